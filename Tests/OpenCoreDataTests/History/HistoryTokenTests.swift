import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

@Suite("History tokens")
struct HistoryTokenTests {
  private func code(_ body: () throws -> Void) -> Int? {
    do {
      try body()
      return nil
    } catch {
      return (error as NSError).code
    }
  }

  @Test("A token of another store is not a position in this store's history")
  func foreignToken() throws {
    let world = try HistoryRequestWorld()
    let other = try HistoryRequestWorld()
    let error = #expect(throws: (any Error).self) {
      try world.run(.fetchHistory(after: other.tokens[0]))
    }
    #expect((error as? NSError)?.code == NSPersistentHistoryTokenExpiredError)
  }

  @Test("Tokens are archived securely and equal what they were")
  func archivedTokens() throws {
    let world = try HistoryRequestWorld()
    let data = try NSKeyedArchiver.archivedData(
      withRootObject: world.tokens[1],
      requiringSecureCoding: true
    )
    let token = try #require(
      try NSKeyedUnarchiver.unarchivedObject(ofClass: NSPersistentHistoryToken.self, from: data)
    )
    #expect(token == world.tokens[1] && token != world.tokens[0])
    #expect(try world.transactions(.fetchHistory(after: token)).count == 1)
  }

  @Test("One token has a position in each of several stores, and each store has its own history")
  func severalStores() throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("stores-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: WarehouseModel.make())
    let stores = try (0..<2).map { index in
      try coordinator.addPersistentStore(
        type: .sqlite,
        at: folder.appendingPathComponent("\(index).sqlite"),
        options: [NSPersistentHistoryTrackingKey: true]
      )
    }
    let context = NSManagedObjectContext(.privateQueue)
    context.persistentStoreCoordinator = coordinator
    try context.performAndWait {
      func save(into store: NSPersistentStore) throws {
        let bin = NSEntityDescription.insertNewObject(forEntityName: "Bin", into: context)
        context.assign(bin, to: store)
        try context.save()
      }
      try save(into: stores[0])
      try save(into: stores[1])
      let token = try #require(coordinator.currentPersistentHistoryToken(fromStores: nil))
      try save(into: stores[1])
      func count(
        after token: NSPersistentHistoryToken?,
        _ affected: [NSPersistentStore]? = nil
      ) throws -> Int? {
        let request = NSPersistentHistoryChangeRequest.fetchHistory(after: token)
        request.affectedStores = affected
        request.resultType = .count
        return (try context.execute(request) as? NSPersistentHistoryResult)?.result as? Int
      }
      #expect(try count(after: nil) == 3)
      #expect(try count(after: nil, [stores[1]]) == 2)
      #expect(try count(after: token) == 1)
      #expect(try count(after: token, [stores[0]]) == 0)
      let own = try #require(coordinator.currentPersistentHistoryToken(fromStores: [stores[0]]))
      #expect(own != token)
      // A store that is not in a token is read from its beginning.
      #expect(try count(after: own) == 2)
    }
    for store in stores { try coordinator.remove(store) }
  }

  @Test("A store without history has no token and no transactions")
  func withoutHistory() throws {
    let warehouse = try Warehouse(history: false)
    let coordinator = warehouse.container.persistentStoreCoordinator
    #expect(coordinator.currentPersistentHistoryToken(fromStores: nil) == nil)
    #expect(try warehouse.history().isEmpty)
  }

  @Test("The token of an empty history expires when later history is deleted")
  func emptyToken() throws {
    let warehouse = try Warehouse()
    let coordinator = warehouse.container.persistentStoreCoordinator
    let start = try #require(coordinator.currentPersistentHistoryToken(fromStores: nil))
    let context = warehouse.context()
    try context.performAndWait {
      for _ in 0..<2 {
        _ = NSEntityDescription.insertNewObject(forEntityName: "Bin", into: context)
        try context.save()
      }
      try context.execute(NSPersistentHistoryChangeRequest.fetchHistory(after: start))
      try context.execute(NSPersistentHistoryChangeRequest.deleteHistory(before: Date()))
      let error = code {
        try context.execute(NSPersistentHistoryChangeRequest.fetchHistory(after: start))
      }
      #expect(error == NSPersistentHistoryTokenExpiredError)
    }
  }

  @Test("A token that is newer than the file has expired")
  func laterToken() throws {
    let world = try HistoryRequestWorld()
    let context = world.warehouse.context()
    let url = world.warehouse.url
    try context.performAndWait {
      try SQLiteConnection(path: url.path, mode: .readWrite)
        .execute(
          """
          DELETE FROM ACHANGE WHERE ZTRANSACTIONID = 3; DELETE FROM ATRANSACTION WHERE Z_PK = 3;
          UPDATE Z_PRIMARYKEY SET Z_MAX = 2 WHERE Z_NAME = 'TRANSACTION'
          """
        )
      let error = code {
        try context.execute(NSPersistentHistoryChangeRequest.fetchHistory(after: world.tokens[2]))
      }
      #expect(error == NSPersistentHistoryTokenExpiredError)
    }
  }

  @Test("A token expires when transactions after it are deleted between others")
  func gapAfterToken() throws {
    let world = try HistoryRequestWorld()
    let request = NSPersistentHistoryChangeRequest.deleteHistory(before: .distantFuture)
    request.fetchRequest = NSPersistentHistoryTransaction.fetchRequest
    request.fetchRequest?.predicate = NSPredicate(format: "author == %@", "widget")
    _ = try world.run(request)
    let error = #expect(throws: NSError.self) {
      try world.run(.fetchHistory(after: world.tokens[0]))
    }
    #expect(error?.code == NSPersistentHistoryTokenExpiredError)
    #expect(try world.transactions(.fetchHistory(after: world.tokens[1])).map(\.author) == [nil])
  }
}
