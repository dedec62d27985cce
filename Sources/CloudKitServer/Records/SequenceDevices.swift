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

  /// Whether the device is to be recorded, which the caller then does.
  ///
  /// No more devices of a user are kept than in the storage: one that another device has replaced
  /// there is due again.
  func isDue(
    _ partition: PartitionID,
    _ user: String,
    _ device: String,
    now: Int64,
    limit: Int
  ) -> Bool {
    let key = User(partition: partition, name: user)
    return noted.withLock { noted in
      var devices = noted[key] ?? []
      if let known = devices.first(where: { $0.device == device }),
        now - known.time < Self.interval
      {
        return false
      }
      devices.removeAll { $0.device == device }
      devices.append(Noted(device: device, time: now))
      if devices.count > limit { devices.removeFirst(devices.count - limit) }
      if noted.count >= Self.users { noted.removeAll() }
      noted[key] = devices
      return true
    }
  }
}
