/// The first items of several sorted lists, within the limits of a page.
///
/// A reader may take part in hundreds of shares of a zone. Each may fill a page by itself, so what
/// is beyond the page is dropped after each list, and the range for the next lists becomes smaller.
struct FeedMerge {
  /// The range in which further items can still belong to the page.
  private(set) var range: ZoneFeed.Range
  private(set) var items: [ZoneFeed.Item] = []

  init(_ range: ZoneFeed.Range) { self.range = range }

  mutating func add(_ more: [ZoneFeed.Item]) {
    items += more
    items.sort { range.isReversed ? $0.position > $1.position : $0.position < $1.position }
    let count = pageCount
    guard count < items.count else { return }
    items.removeLast(items.count - count)
    guard let last = items.last else { return }
    if range.isReversed {
      range.after = last.position
    } else {
      range.before = last.position
    }
  }

  /// The number of items in the page, with the one after its bytes, which shows that more follow.
  private var pageCount: Int {
    var bytes = 0
    for (index, item) in items.prefix(range.limit).enumerated() {
      if bytes >= range.bytes { return index + 1 }
      if case .record(let record) = item.content { bytes += record.size }
    }
    return min(items.count, range.limit)
  }
}
