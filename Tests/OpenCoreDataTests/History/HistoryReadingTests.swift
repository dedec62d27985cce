import Foundation
import OpenCoreData
import Testing

/// What a request for history reads of the stored changes, by `-com.apple.CoreData.SQLDebug 1`.
@Suite("Reading no more history than asked for")
struct HistoryReadingTests {
  private static func printStatements(
    _ request: NSPersistentHistoryChangeRequest,
    expecting count: Int
  ) throws {
    PrintedSQL.turnOn()
    let world = try HistoryRequestWorld()
    PrintedSQL.printMark()
    let found = try world.transactions(request).count
    PrintedSQL.printMark()
    precondition(found == count)
  }

  /// The rows that statements over changes have found.
  private func changesRead(_ result: ExitTest.Result?) throws -> [Int] {
    let printed = try PrintedSQL(result)
    #expect(printed.lines.contains { $0.contains("ATRANSACTION") })
    return printed.fetches.filter { $0.sql.contains("FROM ACHANGE") }.map(\.rows)
  }

  @Test("A request for transactions without their changes reads no changes")
  func transactionsOnly() async throws {
    let result = await #expect(
      processExitsWith: .success,
      observing: [\.standardErrorContent]
    ) {
      let request = NSPersistentHistoryChangeRequest.fetchHistory(
        after: nil as NSPersistentHistoryToken?
      )
      request.resultType = .transactionsOnly
      try Self.printStatements(request, expecting: 3)
    }
    try #expect(changesRead(result).isEmpty)
  }

  @Test("A request for the first transactions reads their changes alone")
  func limit() async throws {
    let result = await #expect(
      processExitsWith: .success,
      observing: [\.standardErrorContent]
    ) {
      let fetch = try #require(NSPersistentHistoryTransaction.fetchRequest)
      fetch.fetchLimit = 1
      fetch.fetchOffset = 1
      try Self.printStatements(.fetchHistory(withFetch: fetch), expecting: 1)
    }
    // Two insertions and an update.
    try #expect(changesRead(result) == [3])
  }

  @Test("A predicate about changes still reads them")
  func predicate() throws {
    let world = try HistoryRequestWorld()
    let fetch = try #require(NSPersistentHistoryTransaction.fetchRequest)
    fetch.predicate = NSPredicate(format: "changes.@count == 2")
    let request = NSPersistentHistoryChangeRequest.fetchHistory(withFetch: fetch)
    request.resultType = .transactionsOnly
    try #expect(world.transactions(request).map(\.author) == ["app", nil])
    request.resultType = .count
    #expect(try world.run(request) as? Int == 2)
  }
}
