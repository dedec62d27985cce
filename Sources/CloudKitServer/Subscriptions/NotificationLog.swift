import CloudKitWebServices

/// The notifications of one device that are not known to have arrived: numbered and bounded.
struct NotificationLog: Sendable {
  struct Entry: Sendable {
    var number: Int64
    /// Says only that there is something to fetch: the newest of a key stands for all before.
    var key: String?
    var notification: PushNotification
  }

  /// What a reader that knows everything up to a number has missed.
  enum Missed {
    case nothing
    case entries(ArraySlice<Entry>)
    /// Something was lost: fetch everything that changed, then read on from this number.
    case resync(Int64)
  }

  private(set) var entries: [Entry] = []
  /// The newest number given out.
  private(set) var newest: Int64
  /// Everything up to here is known to be gone from the log without having been read by all.
  private var lost: Int64

  /// Who has read up to here has missed nothing that is not kept.
  var beginning: Int64 { lost }

  /// Begins at a number from which on nothing was lost.
  init(startingAt number: Int64) {
    newest = number
    lost = number
  }

  mutating func append(_ notification: PushNotification, key: String?, limit: Int) {
    if let key { entries.removeAll { $0.key == key } }
    newest += 1
    entries.append(Entry(number: newest, key: key, notification: notification))
    if entries.count > limit {
      lost = entries[entries.count - limit - 1].number
      entries.removeFirst(entries.count - limit)
    }
  }

  func missed(after number: Int64) -> Missed {
    guard number >= lost, number <= newest else { return .resync(newest) }
    guard let first = entries.firstIndex(where: { $0.number > number }) else { return .nothing }
    return .entries(entries[first...])
  }

  /// The oldest entry after a number, whatever was lost before it.
  func next(after number: Int64) -> Entry? { entries.first { $0.number > number } }

  /// Read by all who read this log.
  mutating func forget(through number: Int64) {
    entries.removeAll { $0.number <= number }
  }
}
