import Synchronization

/// The look-ups of people that one request was charged for.
///
/// A decision that another commit made outdated is repeated, and charged only for what it looks up
/// besides.
final class ChargedLookups: Sendable {
  private let count = Mutex(0)

  /// Calls the body with the number of look-ups that were not charged yet, if there are any.
  func charge(_ total: Int, _ body: (Int) throws -> Void) throws {
    let rest = count.withLock { total - $0 }
    guard rest > 0 else { return }
    try body(rest)
    count.withLock { $0 = max($0, total) }
  }
}
