import CloudKitWebServices
import Effects

/// Creates the change tags and stamps of one commit.
struct RecordStamping: Sendable {
  /// Some clients ignore a stamp without a device.
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

  /// A unique tag, also after a backup was restored.
  ///
  /// It is no counter: a participant of a share must not be able to see how much else its owner
  /// saves.
  func tag() -> String {
    var rest = randomness.next()
    // In place: `String(_:radix:)` creates a character of each digit first.
    return String(unsafeUninitializedCapacity: 13) { digits in
      var count = 0
      repeat {
        digits[count] = Self.digit(rest % 36)
        rest /= 36
        count += 1
      } while rest > 0
      var written = digits[..<count]
      written.reverse()
      return count
    }
  }

  private static func digit(_ value: UInt64) -> UInt8 {
    value < 10
      ? UInt8(ascii: "0") + UInt8(value) : UInt8(ascii: "a") + UInt8(value - 10)
  }
}
