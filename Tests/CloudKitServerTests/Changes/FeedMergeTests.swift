import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

/// Several shares of a zone in one feed.
@Suite("Merging the feeds of shares")
struct FeedMergeTests {
  private func item(_ change: Int64, bytes: Int) -> ZoneFeed.Item {
    var record = StoredRecord.plain("r\(change)", tag: "t", change: change)
    record.fields = Data(count: bytes)
    return ZoneFeed.Item(
      position: ZoneFeed.Position(change: ChangeNumber(change)),
      content: .record(RecordRow(record))
    )
  }

  /// Three shares of ten records each, whose changes alternate.
  private var lists: [[ZoneFeed.Item]] {
    (0..<3).map { share in
      (0..<10).map { item(Int64($0 * 3 + share + 1), bytes: 1000) }
    }
  }

  private func range(isReversed: Bool, limit: Int, bytes: Int) -> ZoneFeed.Range {
    ZoneFeed.Range(after: .start, before: nil, isReversed: isReversed, limit: limit, bytes: bytes)
  }

  @Test("Memory is bounded by the page, not by the number of shares", arguments: [false, true])
  func bounded(isReversed: Bool) {
    var merge = FeedMerge(range(isReversed: isReversed, limit: 200, bytes: 3500))
    for list in lists {
      merge.add(isReversed ? list.reversed() : list)
      #expect(merge.items.count <= 5)
    }
    let changes = merge.items.map(\.position.change.rawValue)
    let all = isReversed ? [30, 29, 28, 27, 26] : [1, 2, 3, 4, 5]
    #expect(changes == Array(all.prefix(changes.count)).map(Int64.init))
    #expect((4...5).contains(changes.count))
    // What lies beyond the page need not be read for the next share.
    let last = merge.items.last?.position
    #expect((isReversed ? merge.range.after : merge.range.before) == last)
  }

  @Test("The number of items is bounded too")
  func count() {
    var merge = FeedMerge(range(isReversed: false, limit: 7, bytes: .max))
    for list in lists { merge.add(list) }
    #expect(merge.items.map(\.position.change.rawValue) == [1, 2, 3, 4, 5, 6, 7])
  }

  @Test("A page that has room keeps all items and its range")
  func room() {
    var merge = FeedMerge(range(isReversed: false, limit: 200, bytes: .max))
    for list in lists { merge.add(list) }
    #expect(merge.items.count == 30)
    #expect(merge.range.before == nil)
  }

  @Test("A participant of many shares reads all records in pages of a few bytes")
  func pages() async throws {
    for isReversed in [false, true] {
      let server = try await TestServer(limits: { $0.bytesPerPage = 1500 })
      let owner = try await server.person("ada")
      let guest = try await server.person("bob")
      try await owner.makeZone()
      let zone = try await TestServer.zone.owned(by: owner)
      let text = FieldContent.string(String(repeating: "x", count: 500))
      for number in 0..<4 {
        try await owner.save(.create, "r\(number)", ["t": text])
        _ = try await owner.modify(
          (0..<3).map { .make(.create, "r\(number)-\($0)", ["t": text], parent: "r\(number)") }
        )
        let share = try await owner.share("r\(number)", "s\(number)", publicPermission: .readOnly)
        try await guest.accept(share)
      }
      // Changes of the first shares after the last was joined.
      try await owner.save(.forceUpdate, "r0-1", ["n": .int64(1)])
      try await owner.save(.forceUpdate, "r1-1", ["n": .int64(1)])
      var names: [String] = []
      var token: String?
      var pages = 0
      repeat {
        let page = try await guest.feed(zone, since: token, reverse: isReversed ? true : nil)
        names += page.names
        token = page.syncToken
        pages += 1
        if page.moreComing != true { break }
      } while pages < 100
      let expected = (0..<4).flatMap { number in
        ["s\(number)", "r\(number)"] + (0..<3).map { "r\(number)-\($0)" }
      }
      #expect(names.sorted() == expected.sorted())
      #expect(pages > 4)
    }
  }
}
