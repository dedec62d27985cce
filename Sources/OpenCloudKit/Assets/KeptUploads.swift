import Foundation
import Synchronization

/// Uploaded files whose records were not saved.
///
/// The service keeps an unused file for a month and counts it towards the user's quota: a save that is
/// repeated until the service accepts it uses the file that it uploaded first. The files are kept in
/// memory, so that a process that starts later uploads them once more.
final class KeptUploads: Sendable {
  /// The field that a file was uploaded for.
  struct Place: Hashable, Sendable {
    var scope: CKDatabase.Scope
    var recordID: CKRecord.ID
    var recordType: CKRecord.RecordType
    var fieldName: CKRecord.FieldKey
  }

  /// The time of an upload, by both clocks: one stops while a machine sleeps, the other can be set.
  struct Time: Sendable {
    var uptime: Double
    var date: Date

    fileprivate func isWithin(_ seconds: Double, of other: Time) -> Bool {
      abs(other.uptime - uptime) <= seconds
        && abs(other.date.timeIntervalSince(date)) <= seconds
    }
  }

  private struct Kept: Sendable {
    var file: CKAsset.StoredFile
    var account: AccountPin.SignIn
    var time: Time

    var uploaded: (file: CKAsset.StoredFile, time: Time) { (file, time) }
  }

  private struct State: Sendable {
    var files: [Place: [Kept]] = [:]
    var count = 0
  }

  /// How long a file is used after its upload, in seconds: half of the time that the service's receipt
  /// for it is valid.
  static let lifetime = 43_200.0
  /// The most files: those of five batches, with less than a kilobyte for each.
  static let limit = 1_000

  private let state = Mutex(State())

  /// Keeps a file for the next save of the same field by the same account; `time` is that of the
  /// upload, also where the file was kept before.
  func keep(
    _ file: CKAsset.StoredFile,
    at place: Place,
    account: AccountPin.SignIn,
    time: Time
  ) {
    state.withLock { state in
      if state.count >= Self.limit { Self.makeRoom(in: &state, time) }
      state.files[place, default: []].append(Kept(file: file, account: account, time: time))
      state.count += 1
    }
  }

  /// Removes and returns a file of a given size and checksum, with the time of its upload; nil if there
  /// is none.
  ///
  /// `checksum` is called only if there is a file of the size.
  func take(
    at place: Place,
    size: Int64,
    account: AccountPin.SignIn,
    time: Time,
    checksum: () -> String?
  ) -> (file: CKAsset.StoredFile, time: Time)? {
    func isUsable(_ kept: Kept) -> Bool {
      kept.file.size == size && kept.account === account
        && kept.time.isWithin(Self.lifetime, of: time)
    }
    let isKnown = state.withLock { $0.files[place]?.contains(where: isUsable) ?? false }
    guard isKnown, let checksum = checksum() else { return nil }
    return state.withLock { state in
      guard
        let index = state.files[place]?.firstIndex(where: {
          isUsable($0) && $0.file.fileChecksum == checksum
        })
      else { return nil }
      state.count -= 1
      return state.files[place]?.remove(at: index).uploaded
    }
  }

  /// Discards the files of a field that was saved.
  func discard(at place: Place) {
    state.withLock { $0.count -= $0.files.removeValue(forKey: place)?.count ?? 0 }
  }

  /// Discards the files that are too old, or the oldest one.
  private static func makeRoom(in state: inout State, _ time: Time) {
    for (place, files) in state.files {
      let usable = files.filter { $0.time.isWithin(lifetime, of: time) }
      state.files[place] = usable.isEmpty ? nil : usable
    }
    state.count = state.files.values.reduce(0) { $0 + $1.count }
    guard state.count >= limit else { return }
    let oldest = state.files.min {
      ($0.value.first?.time.uptime ?? 0) < ($1.value.first?.time.uptime ?? 0)
    }
    guard let place = oldest?.key else { return }
    state.files[place]?.removeFirst()
    if state.files[place]?.isEmpty == true { state.files[place] = nil }
    state.count -= 1
  }
}
