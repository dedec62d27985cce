import CloudKitWebServices
import Effects

/// Makes the change tags and stamps of one commit.
struct RecordStamping: Sendable {
  /// Some clients drop a stamp without a device.
  static let unknownDevice = "1"

  var now: Int64
  var user: String
  var device: String
  var randomness: any RandomSource

  init(now: Int64, user: String, device: String?, randomness: any RandomSource) {
    self.now = now
    self.user = user
    self.device = device ?? Self.unknownDevice
    self.randomness = randomness
  }

  var stamp: ServerStamp { ServerStamp(timestamp: now, userRecordName: user, deviceID: device) }

  /// A tag that never repeats, also not after a backup was put back.
  ///
  /// It counts nothing: who shares a record must not learn from it how much else its owner saves.
  func tag() -> String { String(randomness.next(), radix: 36) }
}
