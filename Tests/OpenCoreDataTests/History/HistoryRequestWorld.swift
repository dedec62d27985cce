import Foundation
import OpenCoreData
import Testing

/// Three saves of three authors: two bins, a change of one, and its deletion with a third bin.
struct HistoryRequestWorld {
  let warehouse: Warehouse
  let tokens: [NSPersistentHistoryToken]
  let first: NSManagedObjectID
  let second: NSManagedObjectID

  init() throws {
    warehouse = try Warehouse()
    let context = warehouse.context()
    let coordinator = warehouse.container.persistentStoreCoordinator
    var tokens: [NSPersistentHistoryToken] = []
    func save(_ author: String?, _ name: String?) throws {
      context.transactionAuthor = author
      context.name = name
      try context.save()
      tokens.append(
        try #require(coordinator.currentPersistentHistoryToken(fromStores: nil))
      )
    }
    var identifiers: [NSManagedObjectID] = []
    try context.performAndWait {
      let bins = (0..<2).map { index in
        let bin = NSEntityDescription.insertNewObject(forEntityName: "Bin", into: context)
        bin.setValue("bin \(index)", forKey: "name")
        return bin
      }
      try save("app", "view")
      identifiers = bins.map(\.objectID)
      bins[0].setValue("changed", forKey: "name")
      try save("widget", nil)
      context.delete(bins[0])
      _ = NSEntityDescription.insertNewObject(forEntityName: "Tag", into: context)
      try save(nil, "last")
    }
    self.tokens = tokens
    first = identifiers[0]
    second = identifiers[1]
  }

  func run(_ request: NSPersistentHistoryChangeRequest) throws -> Any? {
    let context = warehouse.context()
    return try context.performAndWait {
      let result = try context.execute(request) as? NSPersistentHistoryResult
      #expect(result?.resultType == request.resultType)
      return result?.result
    }
  }

  func transactions(
    _ request: NSPersistentHistoryChangeRequest
  ) throws -> [NSPersistentHistoryTransaction] {
    try #require(try run(request) as? [NSPersistentHistoryTransaction])
  }

  func changes(_ predicate: NSPredicate) throws -> [NSPersistentHistoryChange] {
    let fetch = try #require(NSPersistentHistoryChange.fetchRequest)
    fetch.predicate = predicate
    let request = NSPersistentHistoryChangeRequest.fetchHistory(withFetch: fetch)
    request.resultType = .changesOnly
    return try #require(try run(request) as? [NSPersistentHistoryChange])
  }

  func authors(_ predicate: NSPredicate) throws -> [String?] {
    let fetch = try #require(NSPersistentHistoryTransaction.fetchRequest)
    fetch.predicate = predicate
    return try transactions(.fetchHistory(withFetch: fetch)).map(\.author)
  }
}
