import Foundation
import OpenCoreData
import Testing

@Suite("Fetches of child contexts")
struct ChildFetchTests {
  private let container: NSPersistentContainer
  private let parent: NSManagedObjectContext
  private let child = NSManagedObjectContext(.privateQueue)

  init() throws {
    container = try ItemModel.container()
    parent = container.newBackgroundContext()
    child.parent = parent
    let writer = container.newBackgroundContext()
    try writer.performAndWait {
      for code in ["a", "b", "c"] { ItemModel.insert(code: code, into: writer) }
      try writer.save()
    }
  }

  private static var request: NSFetchRequest<NSManagedObject> {
    let request = NSFetchRequest<NSManagedObject>(entityName: "Item")
    request.sortDescriptors = [NSSortDescriptor(key: "code", ascending: true)]
    return request
  }

  @Test("A fetch that returns no faults brings the values along, also of a grandchild")
  func values() throws {
    let request = Self.request
    request.returnsObjectsAsFaults = false
    let grandchild = NSManagedObjectContext(.privateQueue)
    grandchild.parent = child
    try grandchild.performAndWait {
      let items = try grandchild.fetch(request)
      #expect(items.map(\.isFault) == [false, false, false])
      #expect(items.map { $0.value(forKey: "code") as? String } == ["a", "b", "c"])
    }
    try child.performAndWait {
      try #expect(child.fetch(request).allSatisfy { !$0.isFault })
    }
  }

  @Test("A fetch that refreshes takes the parent's values, but for unsaved ones")
  func refreshing() throws {
    try child.performAndWait {
      let items = try child.fetch(Self.request)
      #expect(items.map { $0.value(forKey: "code") as? String } == ["a", "b", "c"])
      items[1].setValue("mine", forKey: "code")
      try parent.performAndWait {
        for item in try parent.fetch(Self.request) {
          item.setValue(7, forKey: "count")
          item.setValue("theirs", forKey: "code")
        }
      }
      let request = Self.request
      request.sortDescriptors = []
      _ = try child.fetch(request)
      #expect(items.map { $0.value(forKey: "count") as? Int } == [0, 0, 0])
      request.shouldRefreshRefetchedObjects = true
      _ = try child.fetch(request)
      #expect(items.map { $0.value(forKey: "count") as? Int } == [7, 7, 7])
      #expect(items.map { $0.value(forKey: "code") as? String } == ["theirs", "mine", "theirs"])
      #expect(child.updatedObjects == [items[1]])
    }
  }
}
