import Foundation
import OpenCoreData
import Testing

@Suite("Fetches with an unknown result type")
struct UntypedFetchTests {
  private func results(
    _ type: NSFetchRequestResultType,
    of context: NSManagedObjectContext
  ) throws -> [any NSFetchRequestResult] {
    let request = NSFetchRequest<any NSFetchRequestResult>(entityName: "Item")
    request.resultType = type
    return try context.fetch(request)
  }

  @Test("Results of every kind are returned as NSFetchRequestResult")
  func kinds() throws {
    let container = try ItemModel.container()
    let context = container.newBackgroundContext()
    try context.performAndWait {
      let item = ItemModel.insert(code: "a", into: context)
      try context.save()
      let objects = try results(.managedObjectResultType, of: context)
      #expect(objects.first as? NSManagedObject === item)
      let identifiers = try results(.managedObjectIDResultType, of: context)
      #expect(identifiers.first as? NSManagedObjectID == item.objectID)
      let dictionaries = try results(.dictionaryResultType, of: context)
      #expect((dictionaries.first as? NSDictionary)?["code"] as? String == "a")
      let counts = try results(.countResultType, of: context)
      #expect((counts.first as? NSNumber)?.intValue == 1)
    }
  }

  @Test("A request for objects of a class that asks for dictionaries fails, with what to write")
  func mistyped() throws {
    let container = try ItemModel.container()
    let context = container.newBackgroundContext()
    try context.performAndWait {
      ItemModel.insert(code: "a", into: context)
      try context.save()
      let request = NSFetchRequest<NSManagedObject>(entityName: "Item")
      request.resultType = .dictionaryResultType
      do {
        _ = try context.fetch(request)
        Issue.record("The dictionaries were dropped.")
      } catch {
        #expect((error as NSError).code == NSCoreDataError)
        #expect((error as NSError).localizedRecoverySuggestion?.contains("NSDictionary") == true)
      }
    }
  }

  /// On Apple's platforms the request implies that the parameter conforms.
  private func found<Result>(
    _ request: NSFetchRequest<Result>,
    in context: NSManagedObjectContext
  ) throws -> (results: [Result], count: Int) {
    (try context.fetch(request), try context.count(for: request))
  }

  @Test("A function whose type parameter names no protocol runs a request")
  func impliedConformance() throws {
    let container = try ItemModel.container()
    let context = container.newBackgroundContext()
    try context.performAndWait {
      let item = ItemModel.insert(code: "a", into: context)
      try context.save()
      let objects = NSFetchRequest<NSManagedObject>(entityName: "Item")
      let found = try found(objects, in: context)
      #expect(found.results == [item])
      #expect(found.count == 1)
      let dictionaries = NSFetchRequest<NSDictionary>(entityName: "Item")
      dictionaries.resultType = .dictionaryResultType
      #expect(try self.found(dictionaries, in: context).results.first?["code"] as? String == "a")
      objects.resultType = .dictionaryResultType
      #expect(throws: (any Error).self) { try self.found(objects, in: context) }
    }
  }

  @Test("Without a type the results are Any")
  func untyped() throws {
    let container = try ItemModel.container()
    let context = container.newBackgroundContext()
    try context.performAndWait {
      ItemModel.insert(code: "a", into: context)
      let request: NSFetchRequest<any NSFetchRequestResult> = NSFetchRequest(entityName: "Item")
      let results = try context.fetch(request)
      #expect((results as? [NSManagedObject])?.count == 1)
    }
  }
}
