import CloudKitWebServices

/// The notifications of one device that may not have been received: numbered and limited.
struct NotificationLog: Sendable {
  struct Entry: Sendable {
    var number: Int64
    /// The key of a notification that only means that there are changes to fetch: the newest
    /// replaces all before.
    var key: String?
    var notification: PushNotification
  }

  /// The notifications that a reader of everything up to a number has missed.
  enum Missed {
    case nothing
    case entries(ArraySlice<Entry>)
    /// Notifications were lost: fetch all changes, then read from this number.
    case resync(Int64)
  }

  private(set) var entries: [Entry] = []
  /// The newest assigned number.
  private(set) var newest: Int64
  /// Everything up to this number was removed from the log, possibly without having been read.
  private var lost: Int64

  /// A reader up to this number has missed nothing that was removed.
  var beginning: Int64 { lost }

  /// Creates a log in which nothing was lost from a number on.
  init(startingAt number: Int64) {
    newest = number
    lost = number
  }

  mutating func append(_ notification: PushNotification, key: String?, limit: Int) {
    if let key { entries.removeAll { $0.key == key } }
    newest += 1
    entries.append(Entry(number: newest, key: key, notification: notification))
    if entries.count > limit {
      lost = max(lost, entries[entries.count - limit - 1].number)
      entries.removeFirst(entries.count - limit)
    }
  }

  /// Records that a notification was left out.
  ///
  /// The entries stay for polls, whose replies do not say that all changes have to be fetched.
  mutating func lose() {
    newest += 1
    lost = newest
  }

  func missed(after number: Int64) -> Missed {
    guard number >= lost, number <= newest else { return .resync(newest) }
    guard let first = entries.firstIndex(where: { $0.number > number }) else { return .nothing }
    return .entries(entries[first...])
  }

  /// The oldest entry after a number, regardless of losses before it.
  func next(after number: Int64) -> Entry? { entries.first { $0.number > number } }

  /// Removes entries that all readers of this log have read.
  mutating func forget(through number: Int64) {
    entries.removeAll { $0.number <= number }
  }
}
