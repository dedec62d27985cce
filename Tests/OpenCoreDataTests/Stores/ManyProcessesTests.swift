import Foundation
import OpenCoreData
import Testing

@Suite("Several coordinators and processes on one file")
struct ManyProcessesTests {
  @Test("Two coordinators of one process see each other's saves, and keys never collide")
  func coordinators() throws {
    let folder = try ScratchFolder()
    let first = try CatalogStack(folder.file("shared.sqlite"))
    let second = try CatalogStack(folder.file("shared.sqlite"))
    var identifiers: Set<URL> = []
    for _ in 0..<5 {
      identifiers.insert(try first.fill().objectID.uriRepresentation())
      identifiers.insert(try second.fill().objectID.uriRepresentation())
    }
    #expect(identifiers.count == 10)
    #expect(try first.titles().count == 30)
    #expect(try second.titles().count == 30)
  }

  @Test("Processes that insert at the same time lose no row and share no key")
  func processes() async throws {
    let folder = try ScratchFolder()
    let url = folder.file("shared.sqlite")
    try CatalogStack(url).close()
    let path = url.path
    await withTaskGroup(of: Void.self) { group in
      for number in 1...3 {
        group.addTask {
          await #expect(processExitsWith: .success) {
            [path = path as String, number = number as Int] in
            let stack = try CatalogStack(URL(fileURLWithPath: path))
            for round in 0..<10 {
              try stack.context.performAndWait {
                for index in 0..<7 {
                  let work = NSEntityDescription.insertNewObject(
                    forEntityName: "Work",
                    into: stack.context
                  )
                  work.setValue("\(number)-\(round)-\(index)", forKey: "title")
                }
                try stack.context.save()
              }
            }
          }
        }
      }
    }
    let stack = try CatalogStack(url)
    try stack.context.performAndWait {
      let request = NSFetchRequest<NSManagedObject>(entityName: "Work")
      let works = try stack.context.fetch(request)
      #expect(works.count == 210)
      #expect(Set(works.map { $0.objectID.uriRepresentation() }).count == 210)
      #expect(Set(works.compactMap { $0.value(forKey: "title") as? String }).count == 210)
    }
  }

  @Test("A store that another process has open is only destroyed with the force option")
  func destroyingElsewhere() async throws {
    let folder = try ScratchFolder()
    let url = folder.file("shared.sqlite")
    let stack = try CatalogStack(url)
    try stack.fill()
    let path = url.path
    await #expect(processExitsWith: .success) { [path = path as String] in
      let url = URL(fileURLWithPath: path)
      let coordinator = NSPersistentStoreCoordinator(managedObjectModel: LibraryCatalogModel.make())
      do {
        try coordinator.destroyPersistentStore(at: url, type: .sqlite)
        exit(1)
      } catch {
        guard (error as NSError).code == NSPersistentStoreTimeoutError else { exit(2) }
      }
    }
    #expect(try stack.titles().count == 3)
    await #expect(processExitsWith: .success) { [path = path as String] in
      let coordinator = NSPersistentStoreCoordinator(managedObjectModel: LibraryCatalogModel.make())
      try coordinator.destroyPersistentStore(
        at: URL(fileURLWithPath: path),
        type: .sqlite,
        options: [NSPersistentStoreForceDestroyOption: true]
      )
    }
    #expect(try Data(contentsOf: url).isEmpty)
  }
}
