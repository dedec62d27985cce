import CloudKitWebServices

/// One page of a zone's feed, and the token for the next.
struct FeedPage {
  /// The limits of a page.
  struct Size {
    var records: Int
    var bytes: Int
    /// The bytes of a record in the reply: not fewer than those of its row.
    var weight: (RecordRow) -> Int

    private static let deletionWeight = 256

    /// The number of items in the page: at least one, if there is one.
    ///
    /// An item weighs at least the bytes of its row. The storage stops reading by those, so where it has
    /// stopped, the page ends before the last item, and a next page follows.
    func count(of items: [ZoneFeed.Item]) -> Int {
      var sum = 0
      for (index, item) in items.prefix(records).enumerated() {
        if index > 0, sum >= bytes { return index }
        if case .record(let record) = item.content {
          sum += weight(record)
        } else {
          sum += max(Self.deletionWeight, item.bytesRead)
        }
      }
      return min(items.count, records)
    }
  }

  private(set) var items: [ZoneFeed.Item]
  let isMoreComing: Bool
  let token: ChangeToken

  /// An empty page: the reply has no bytes left, and the token keeps its position.
  init(postponing token: ChangeToken) {
    items = []
    isMoreComing = true
    self.token = token
  }

  init(
    _ feed: ZoneFeed,
    _ token: ChangeToken,
    counter: ChangeNumber,
    isReversed: Bool,
    includesDeleted: Bool = false,
    size: Size
  ) throws {
    var range = Self.range(
      token,
      isReversed: isReversed,
      includesDeleted: includesDeleted,
      limit: size.records
    )
    range.bytes = size.bytes
    var found = try feed.items(range)
    // Changes after the counter was read belong to the next page, because earlier changes may be
    // missing here. Such an item ends a page, or is skipped at the start of one that is newest
    // first.
    let isNewer = { (item: ZoneFeed.Item) in item.position.change > counter }
    if !isReversed { found.removeAll(where: isNewer) }
    var count = size.count(of: found)
    // A record that moves between two shares leaves one and enters the other at one position, and the
    // next page begins after it: a page has both or neither.
    let isSplit =
      count > 0 && count < found.count && found[count - 1].position == found[count].position
    if isSplit { count += count > 1 ? -1 : 1 }
    isMoreComing = found.count > count || isSplit
    found.removeLast(found.count - count)
    let last = found.last?.position
    found.removeAll(where: isNewer)
    var next = ChangeToken(
      zone: feed.zone,
      feed.partition,
      counter: counter,
      participation: feed.reader.wholeSince
    )
    if isReversed {
      let top = token.top ?? counter
      if isMoreComing {
        next.counter = token.counter
        next.place = token.place
        next.ceiling = last
        next.top = top
        next.began = token.began ?? (token.isFirst ? top : nil)
      } else {
        next.counter = top
      }
    } else if isMoreComing {
      next.position = last ?? token.position
      next.began = token.began ?? (token.isFirst ? counter : nil)
    }
    if isMoreComing { next.seen = max(token.seen ?? .zero, counter) }
    self.token = next
    items = try Self.withoutReturned(found, feed)
  }

  /// The range of a page after a token: one item more than the page, to detect that more follow.
  static func range(
    _ token: ChangeToken,
    isReversed: Bool,
    includesDeleted: Bool,
    limit: Int
  ) -> ZoneFeed.Range {
    ZoneFeed.Range(
      after: token.isFirst ? .start : token.position,
      // A page that continues a listing newest first stays below its ceiling.
      before: isReversed ? token.ceiling : nil,
      isReversed: isReversed,
      isFirst: token.isFirst && !includesDeleted,
      limit: limit + 1
    )
  }

  /// Removes a deletion whose record the reader sees again through another share, at a later
  /// position.
  private static func withoutReturned(
    _ items: [ZoneFeed.Item],
    _ feed: ZoneFeed
  ) throws -> [ZoneFeed.Item] {
    guard case .participant(let view) = feed.reader, !view.isWhole else { return items }
    let departed = items.compactMap { item -> RecordKey? in
      if case .departed(let key, _) = item.content { key } else { nil }
    }
    guard !departed.isEmpty else { return items }
    let found = try feed.snapshot.records(in: feed.partition, keys: departed)
    let returned = Set(found.values.filter { !$0.isDeleted && view.sees($0) }.map(\.key))
    var reported: Set<RecordKey> = []
    return items.filter { item in
      guard case .departed(let key, _) = item.content else { return true }
      return !returned.contains(key) && reported.insert(key).inserted
    }
  }
}
