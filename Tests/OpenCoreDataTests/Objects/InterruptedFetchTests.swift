import Foundation
import OpenCoreData
import Testing

/// A class whose initializer uses the object's context.
final class CuriousPage: NSManagedObject {
  nonisolated(unsafe) static var look: (() -> Void)?
  let looked: Void = CuriousPage.look?() ?? ()
}

@Suite("Fetching while objects are being created", .serialized)
struct InterruptedFetchTests {
  @Test("A row has one instance even if a class requests it while a fetch creates it")
  func uniquing() throws {
    let chapter = ModelParts.entity("Chapter")
    let page = ModelParts.entity("Page")
    page.managedObjectClassName = NSStringFromClass(CuriousPage.self)
    ModelParts.relate(chapter, "pages", toMany: true, page, "chapter", toMany: false)
    let model = NSManagedObjectModel()
    model.entities = [chapter, page]
    let folder = try ScratchFolder()
    let container = NSPersistentContainer(name: "Curious", managedObjectModel: model)
    container.persistentStoreDescriptions = [
      NSPersistentStoreDescription(url: folder.file("store.sqlite"))
    ]
    var failure: (any Error)?
    container.loadPersistentStores { _, error in failure = error }
    if let failure { throw failure }
    let writer = container.newBackgroundContext()
    let identifiers = try writer.performAndWait {
      let chapter = NSEntityDescription.insertNewObject(forEntityName: "Chapter", into: writer)
      let pages = (0..<5).map { _ in
        NSEntityDescription.insertNewObject(forEntityName: "Page", into: writer)
      }
      for page in pages { page.setValue(chapter, forKey: "chapter") }
      try writer.save()
      return pages.map(\.objectID)
    }

    for prefetches in [false, true] {
      let context = container.newBackgroundContext()
      try context.performAndWait {
        var met: [NSManagedObject] = []
        CuriousPage.look = {
          CuriousPage.look = nil
          met = identifiers.map(context.object(with:))
        }
        defer { CuriousPage.look = nil }
        var pages: [NSManagedObject]
        if prefetches {
          let request = NSFetchRequest<NSManagedObject>(entityName: "Chapter")
          request.relationshipKeyPathsForPrefetching = ["pages"]
          let chapter = try #require(try context.fetch(request).first)
          pages = Array(try #require(chapter.value(forKey: "pages") as? Set<NSManagedObject>))
        } else {
          pages = try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Page"))
        }
        #expect(met.count == 5)
        #expect(Set(pages) == Set(met))
        #expect(context.registeredObjects.filter { $0.entity.name == "Page" } == Set(met))
        for page in pages { #expect(page.value(forKey: "chapter") is NSManagedObject) }
      }
    }
  }
}
