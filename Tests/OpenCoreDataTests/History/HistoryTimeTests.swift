import Effects
import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

@Suite("History before and after a time")
struct HistoryTimeTests {
  /// A clock that is read several times in one moment.
  private struct StandingClock: EffectClock {
    let now = Date(timeIntervalSinceReferenceDate: 800_000_000)
    var uptime: Double { LiveClock().uptime }
    func sleep(seconds: Double) async throws { try await LiveClock().sleep(seconds: seconds) }
  }

  @Test("Purged history is deleted, later history is kept, and a token before it has expired")
  func purging() throws {
    let world = try HistoryRequestWorld()
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

  /// Sets the times of the transactions, in seconds from `now`, by their numbers.
  private func setTimes(
    in world: HistoryRequestWorld,
    around now: Date,
    _ offsets: String
  ) throws {
    try SQLiteConnection(path: world.warehouse.url.path, mode: .readWrite).execute(
      "UPDATE ATRANSACTION SET ZTIMESTAMP = \(now.timeIntervalSinceReferenceDate) "
        + "+ CASE Z_PK \(offsets) END"
    )
  }

  @Test("Fetching and deleting by date skip no later transaction after the clock was set back")
  func clockWentBack() throws {
    let world = try HistoryRequestWorld()
    let now = Date()
    try setTimes(in: world, around: now, "WHEN 1 THEN -10 WHEN 2 THEN 10 ELSE -5")
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
    let world = try HistoryRequestWorld()
    let now = Date()
    try setTimes(in: world, around: now, "WHEN 1 THEN -30 WHEN 2 THEN 1e8 ELSE -10")
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
    let world = try HistoryRequestWorld()
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

  @Test("The limit of a deletion counts transactions before its bound alone")
  func limitedDeletion() throws {
    let world = try HistoryRequestWorld()
    let request = NSPersistentHistoryChangeRequest.deleteHistory(before: world.tokens[2])
    let fetch = try #require(NSPersistentHistoryTransaction.fetchRequest)
    fetch.sortDescriptors = [NSSortDescriptor(key: "transactionNumber", ascending: false)]
    fetch.fetchLimit = 1
    request.fetchRequest = fetch
    request.resultType = .count
    #expect(try world.run(request) as? Int == 1)
    let left = try world.transactions(.fetchHistory(after: .distantPast))
    #expect(left.map(\.transactionNumber) == [1, 3])
  }

  @Test("A deletion may select transactions by their changes")
  func deletionByChanges() throws {
    let world = try HistoryRequestWorld()
    let request = NSPersistentHistoryChangeRequest.deleteHistory(before: .distantFuture)
    request.fetchRequest = NSPersistentHistoryTransaction.fetchRequest
    request.fetchRequest?.predicate = NSPredicate(format: "changes.@count == 1")
    request.resultType = .count
    #expect(try world.run(request) as? Int == 1)
    let left = try world.transactions(.fetchHistory(after: .distantPast))
    #expect(left.map(\.author) == ["app", nil])
  }

  @Test("History after a transaction's own date begins with the next one")
  func afterOwnDate() throws {
    let world = try HistoryRequestWorld()
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
