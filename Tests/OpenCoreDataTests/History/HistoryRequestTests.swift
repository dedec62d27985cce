import Effects
import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

@Suite("History requests")
struct HistoryRequestTests {
  /// Three saves of three authors: two bins, a change of one, and its deletion with a third bin.
  private struct World {
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

  /// A clock that is read several times in one moment.
  private struct StandingClock: EffectClock {
    let now = Date(timeIntervalSinceReferenceDate: 800_000_000)
    var uptime: Double { LiveClock().uptime }
    func sleep(seconds: Double) async throws { try await LiveClock().sleep(seconds: seconds) }
  }

  @Test("History is fetched after a token, a transaction, a date, or from the beginning")
  func bounds() throws {
    let world = try World()
    let all = try world.transactions(.fetchHistory(after: nil as NSPersistentHistoryToken?))
    #expect(all.map(\.author) == ["app", "widget", nil])
    #expect(all.map(\.contextName) == ["view", nil, "last"])
    #expect(all.map { $0.changes?.count } == [2, 1, 2])
    #expect(all.map(\.token) == world.tokens)
    #expect(try world.transactions(.fetchHistory(after: world.tokens[1])).count == 1)
    #expect(try world.transactions(.fetchHistory(after: all[0])).map(\.author) == ["widget", nil])
    #expect(try world.transactions(.fetchHistory(after: .distantPast)).count == 3)
    #expect(try world.transactions(.fetchHistory(after: .distantFuture)).isEmpty)
    #expect(try world.transactions(.fetchHistory(after: world.tokens[2])).isEmpty)
    let request = NSPersistentHistoryChangeRequest.fetchHistory(after: world.tokens[0])
    #expect(request.token == world.tokens[0])
    #expect(request.resultType == .transactionsAndChanges)
  }

  @Test("Each result type is returned: a status, identifiers, a count, transactions, changes")
  func resultTypes() throws {
    let world = try World()
    func result(_ type: NSPersistentHistoryResultType) throws -> Any? {
      let request = NSPersistentHistoryChangeRequest.fetchHistory(after: Date.distantPast)
      request.resultType = type
      return try world.run(request)
    }
    #expect(try result(.statusOnly) as? Bool == true)
    #expect(try result(.count) as? Int == 5)
    let identifiers = try result(.objectIDs) as? [NSManagedObjectID]
    #expect(identifiers?.count == 3)
    #expect(identifiers?.prefix(2) == [world.first, world.second])
    let transactions = try result(.transactionsOnly) as? [NSPersistentHistoryTransaction]
    #expect(transactions?.count == 3)
    #expect(transactions?.allSatisfy { $0.changes == nil } == true)
    let changes = try result(.changesOnly) as? [NSPersistentHistoryChange]
    #expect(changes?.map(\.changeType) == [.insert, .insert, .update, .insert, .delete])
    #expect(changes?.map(\.transaction?.author) == ["app", "app", "widget", nil, nil])
    let both = try result(.transactionsAndChanges) as? [NSPersistentHistoryTransaction]
    #expect(both?[1].changes?.first?.transaction === both?[1])
  }

  @Test("Changes have the updated properties of an update, and none for an insert")
  func changes() throws {
    let world = try World()
    let all = try world.transactions(.fetchHistory(after: Date.distantPast))
    #expect(all[0].changes?.first?.updatedProperties == nil)
    #expect(all[1].changes?.first?.updatedProperties?.map(\.name) == ["name"])
    #expect(all[2].changes?.last?.changedObjectID == world.first)
    #expect(all[2].changes?.last?.tombstone == nil)
    #expect(all[0].storeID == all[0].changes?.first?.changedObjectID.persistentStore?.identifier)
    #expect(!all[0].bundleID.isEmpty && !all[0].processID.isEmpty)
    #expect(all[0].timestamp <= all[1].timestamp)
  }

  @Test("Transactions are fetched by author, name, time, number and token")
  func transactionPredicates() throws {
    let world = try World()
    let author = "author"
    #expect(try world.authors(NSPredicate(format: "%K == %@", author, "app")) == ["app"])
    #expect(try world.authors(NSPredicate(format: "%K != %@", author, "app")) == ["widget", nil])
    #expect(try world.authors(NSPredicate(format: "author == nil")) == [nil])
    #expect(
      try world.authors(NSPredicate(format: "author IN %@", ["app", "widget"]))
        == ["app", "widget"]
    )
    #expect(try world.authors(NSPredicate(format: "contextName == 'last'")) == [nil])
    #expect(try world.authors(NSPredicate(format: "transactionNumber == 2")) == ["widget"])
    #expect(
      try world.authors(NSPredicate(format: "timestamp > %@", Date.distantFuture as NSDate)) == []
    )
    #expect(
      try world.authors(NSPredicate(format: "token == %@", world.tokens[1])) == ["widget"]
    )
    #expect(try world.authors(NSPredicate(format: "bundleID == 'none'")) == [])
  }

  @Test("Changes are fetched by kind, object and entity, with order and limit")
  func changePredicates() throws {
    let world = try World()
    let deletion = NSPersistentHistoryChangeType.delete.rawValue
    #expect(
      try world.changes(NSPredicate(format: "changeType == %d", deletion)).map(\.changedObjectID)
        == [world.first]
    )
    #expect(
      try world.changes(NSPredicate(format: "%K == %@", "changedObjectID", world.first))
        .map(\.changeType) == [.insert, .update, .delete]
    )
    #expect(
      try world.changes(NSPredicate(format: "changedObjectID IN %@", [world.second])).count == 1
    )
    let tag = try #require(world.warehouse.container.managedObjectModel.entitiesByName["Tag"])
    #expect(try world.changes(NSPredicate(format: "changedEntity == %@", tag)).count == 1)

    let fetch = try #require(NSPersistentHistoryChange.fetchRequest)
    fetch.sortDescriptors = [NSSortDescriptor(key: "changeID", ascending: false)]
    fetch.fetchLimit = 2
    let request = NSPersistentHistoryChangeRequest.fetchHistory(withFetch: fetch)
    request.resultType = .changesOnly
    let changes = try world.run(request) as? [NSPersistentHistoryChange]
    #expect(changes?.map(\.changeID) == [5, 4])
    request.resultType = .count
    #expect(try world.run(request) as? Int == 2)
    request.fetchRequest?.predicate = NSPredicate(format: "changeType == 1")
    request.resultType = .transactionsAndChanges
    let transactions = try world.run(request) as? [NSPersistentHistoryTransaction]
    #expect(transactions?.map(\.author) == ["widget"])
  }

  @Test("A fetch request filters a request after a token")
  func fetchAfterToken() throws {
    let world = try World()
    let request = NSPersistentHistoryChangeRequest.fetchHistory(after: world.tokens[0])
    let fetch = try #require(NSPersistentHistoryTransaction.fetchRequest)
    fetch.predicate = NSPredicate(format: "author != 'widget'")
    request.fetchRequest = fetch
    #expect(try world.transactions(request).map(\.author) == [nil])
    let context = world.warehouse.context()
    #expect(
      NSPersistentHistoryTransaction.entityDescription(with: context)?
        .attributesByName["author"] != nil
    )
    #expect(
      NSPersistentHistoryChange.entityDescription(with: context)?
        .attributesByName["changedObjectID"] != nil
    )
  }

  @Test("A transaction's notification can be merged like that of a save")
  func objectIDNotification() throws {
    let world = try World()
    let context = world.warehouse.context()
    let writer = world.warehouse.context()
    try context.performAndWait {
      let bin = try context.existingObject(with: world.second)
      #expect(bin.value(forKey: "name") as? String == "bin 1")
      try writer.performAndWait {
        try writer.existingObject(with: world.second).setValue("renamed", forKey: "name")
        try writer.save()
      }
      #expect(bin.value(forKey: "name") as? String == "bin 1")
      for transaction in try world.transactions(.fetchHistory(after: world.tokens[2])) {
        let note = transaction.objectIDNotification()
        #expect(note.userInfo?[NSUpdatedObjectIDsKey] as? Set<NSManagedObjectID> == [world.second])
        context.mergeChanges(fromContextDidSave: note)
      }
      #expect(bin.value(forKey: "name") as? String == "renamed")
    }
  }

  @Test("Purged history is deleted, later history is kept, and a token before it has expired")
  func purging() throws {
    let world = try World()
    #expect(try world.run(.deleteHistory(before: world.tokens[2])) as? Bool == true)
    #expect(
      try world.transactions(.fetchHistory(after: world.tokens[1])).map(\.author) == [nil]
    )
    let error = #expect(throws: (any Error).self) {
      try world.run(.fetchHistory(after: world.tokens[0]))
    }
    #expect((error as? NSError)?.domain == NSCocoaErrorDomain)
    #expect((error as? NSError)?.code == NSPersistentHistoryTokenExpiredError)
    let last = try world.transactions(.fetchHistory(after: Date.distantPast))
    #expect(last.count == 1)
    _ = try world.run(.deleteHistory(before: last.first))
    #expect(try world.transactions(.fetchHistory(after: Date.distantPast)).count == 1)
    _ = try world.run(.deleteHistory(before: Date.distantFuture))
    #expect(try world.transactions(.fetchHistory(after: Date.distantPast)).isEmpty)
    #expect(try world.transactions(.fetchHistory(after: world.tokens[2])).isEmpty)
  }

  @Test("A token of another store is not a position in this store's history")
  func foreignToken() throws {
    let world = try World()
    let other = try World()
    let error = #expect(throws: (any Error).self) {
      try world.run(.fetchHistory(after: other.tokens[0]))
    }
    #expect((error as? NSError)?.code == NSPersistentHistoryTokenExpiredError)
  }

  @Test("Tokens are archived securely and equal what they were")
  func archivedTokens() throws {
    let world = try World()
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

  private func code(_ body: () throws -> Void) -> Int? {
    do {
      try body()
      return nil
    } catch {
      return (error as NSError).code
    }
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
    let world = try World()
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

  @Test("Fetching and deleting by date skip no later transaction after the clock was set back")
  func clockWentBack() throws {
    let world = try World()
    let url = world.warehouse.url
    let now = Date()
    try SQLiteConnection(path: url.path, mode: .readWrite).execute(
      "UPDATE ATRANSACTION SET ZTIMESTAMP = \(now.timeIntervalSinceReferenceDate) "
        + "+ CASE Z_PK WHEN 1 THEN -10 WHEN 2 THEN 10 ELSE -5 END"
    )
    #expect(try world.transactions(.fetchHistory(after: now)).map(\.author) == ["widget", nil])
    let context = world.warehouse.context()
    _ = try context.performAndWait {
      try context.execute(NSPersistentHistoryChangeRequest.deleteHistory(before: now))
    }
    let all = try world.transactions(.fetchHistory(after: nil as NSPersistentHistoryToken?))
    #expect(all.map(\.author) == ["widget", nil])
  }

  @Test("A transaction with a time years ahead does not keep the history for years")
  func clockWasAhead() throws {
    let world = try World()
    let url = world.warehouse.url
    let now = Date()
    try SQLiteConnection(path: url.path, mode: .readWrite).execute(
      "UPDATE ATRANSACTION SET ZTIMESTAMP = \(now.timeIntervalSinceReferenceDate) "
        + "+ CASE Z_PK WHEN 1 THEN -30 WHEN 2 THEN 1e8 ELSE -10 END"
    )
    let context = world.warehouse.context()
    func delete(before seconds: Double) throws {
      _ = try context.performAndWait {
        try context.execute(
          NSPersistentHistoryChangeRequest.deleteHistory(before: now.addingTimeInterval(seconds))
        )
      }
    }
    func count() throws -> Int {
      try world.transactions(.fetchHistory(after: nil as NSPersistentHistoryToken?)).count
    }
    try delete(before: -40)
    #expect(try count() == 3)
    try delete(before: -20)
    #expect(try count() == 1)
  }

  @Test("A deletion with a fetch request deletes the transactions that it finds, and no others")
  func selectedDeletion() throws {
    let world = try World()
    let context = world.warehouse.context()
    func delete(
      _ request: NSPersistentHistoryChangeRequest,
      _ fetch: NSFetchRequest<any NSFetchRequestResult>?,
      _ predicate: NSPredicate
    ) throws -> Any? {
      request.fetchRequest = fetch
      request.fetchRequest?.predicate = predicate
      return try context.performAndWait {
        (try context.execute(request) as? NSPersistentHistoryResult)?.result
      }
    }
    func authors() throws -> [String?] {
      try world.transactions(.fetchHistory(after: .distantPast)).map(\.author)
    }
    let widget = NSPredicate(format: "author == %@", "widget")
    let before = try delete(
      .deleteHistory(before: world.tokens[1]),
      NSPersistentHistoryTransaction.fetchRequest,
      widget
    )
    #expect(before as? Bool == true)
    #expect(try authors() == ["app", "widget", nil])
    let request = NSPersistentHistoryChangeRequest.deleteHistory(before: .distantFuture)
    request.resultType = .count
    let count = try delete(request, NSPersistentHistoryTransaction.fetchRequest, widget)
    #expect(count as? Int == 1)
    #expect(try authors() == ["app", nil])
    #expect(
      try world.transactions(.fetchHistory(after: .distantPast)).map { $0.changes?.count }
        == [2, 2]
    )
    let error = #expect(throws: NSError.self) {
      _ = try delete(
        .deleteHistory(before: .distantFuture),
        NSPersistentHistoryChange.fetchRequest,
        NSPredicate(value: true)
      )
    }
    #expect(error?.code == NSPersistentStoreUnsupportedRequestTypeError)
    #expect(try authors() == ["app", nil])
  }

  @Test("History after a transaction's own date begins with the next one")
  func afterOwnDate() throws {
    let world = try World()
    let all = try world.transactions(.fetchHistory(after: .distantPast))
    for (index, transaction) in all.enumerated() {
      let later = try world.transactions(.fetchHistory(after: transaction.timestamp))
      #expect(later.map(\.author) == all[(index + 1)...].map(\.author))
    }
    // The clock is set back by an hour after the second save.
    try SQLiteConnection(path: world.warehouse.url.path, mode: .readWrite).execute(
      "UPDATE ATRANSACTION SET ZTIMESTAMP = ZTIMESTAMP - 3600 WHERE Z_PK = 3"
    )
    #expect(
      try world.transactions(.fetchHistory(after: all[1].timestamp)).map(\.author) == [nil]
    )
  }

  @Test("Saves of one moment have different times in the history")
  func sameMoment() throws {
    let folder = try ScratchFolder()
    var effects = Effects.live
    effects.clock = StandingClock()
    let container = NSPersistentContainer(
      name: "Clocks",
      managedObjectModel: ItemModel.make(),
      effects: effects
    )
    let description = NSPersistentStoreDescription(url: folder.file("clock.sqlite"))
    description.setOption(true as NSNumber, forKey: NSPersistentHistoryTrackingKey)
    container.persistentStoreDescriptions = [description]
    container.loadPersistentStores { _, error in #expect(error == nil) }
    let context = container.newBackgroundContext()
    try context.performAndWait {
      for _ in 0..<4 {
        ItemModel.insert(into: context)
        try context.save()
      }
      func times(after date: Date) throws -> [Date] {
        let request = NSPersistentHistoryChangeRequest.fetchHistory(after: date)
        let result = try context.execute(request) as? NSPersistentHistoryResult
        let found = try #require(result?.result as? [NSPersistentHistoryTransaction])
        return found.map(\.timestamp)
      }
      let all = try times(after: .distantPast)
      #expect(Set(all).count == 4)
      #expect(try times(after: all[1]) == Array(all[2...]))
    }
  }
}
