import Synchronization

/// Devices whose batches with a number were noted lately: once an hour is enough for replies that are
/// kept for much longer.
final class SequenceDevices: Sendable {
  private struct User: Hashable {
    var partition: PartitionID
    var name: String
  }

  private struct Noted {
    var device: String
    var time: Int64
  }

  private static let interval: Int64 = 3_600_000
  /// Limits the memory; an evicted device is recorded again.
  private static let users = 10_000

  private let noted = Mutex<[User: [Noted]]>([:])

  /// Makes a device due again, because its record was changed.
  func forget(_ partition: PartitionID, _ user: String, _ device: String) {
    let key = User(partition: partition, name: user)
    noted.withLock { $0[key]?.removeAll { $0.device == device } }
  }

  /// Whether the next commit of the device has to record it.
  func isDue(_ partition: PartitionID, _ user: String, _ device: String, now: Int64) -> Bool {
    let key = User(partition: partition, name: user)
    return noted.withLock { noted in
      let known = noted[key]?.first { $0.device == device }
      return known.map { now - $0.time >= Self.interval } ?? true
    }
  }

  /// Notes a device that a commit has recorded: a decision whose commit fails has not.
  ///
  /// No more devices of a user are kept than in the storage: one that another device has replaced
  /// there is due again.
  func note(
    _ partition: PartitionID,
    _ user: String,
    _ device: String,
    now: Int64,
    limit: Int
  ) {
    let key = User(partition: partition, name: user)
    noted.withLock { noted in
      var devices = noted[key] ?? []
      devices.removeAll { $0.device == device }
      devices.append(Noted(device: device, time: now))
      if devices.count > limit { devices.removeFirst(devices.count - limit) }
      if noted.count >= Self.users { noted.removeAll() }
      noted[key] = devices
    }
  }
}
