import Foundation

/// A device's number for one batch, so that a batch whose reply was lost can be repeated.
///
/// The server keeps the reply of (user, database, device, sequence) until a later request
/// acknowledges it. A device sends one batch after the other, under ascending numbers: a number below
/// one that was executed, whose reply is not kept any more, is a request that the network delayed or
/// duplicated, and is refused.
package struct ClientSequence: Codable, Hashable, Sendable {
  package var device: String
  package var sequence: Int64
  /// The client has received the replies up to and including this number; they need not be kept.
  package var acknowledged: Int64
  /// A device of the same client, such as its former launch, whose batches up to `acknowledged` are
  /// settled.
  ///
  /// If it executed no later batch, its replies are kept for a limited time, and removed before those
  /// of other devices. A copy of the client may continue the same device: then they are kept as before.
  package var finishedDevice: String?

  /// The allowed numbers: those that every JSON reader reads exactly, so that the server's
  /// arithmetic can't overflow.
  package static let numbers: ClosedRange<Int64> = 0...(1 << 53)
  /// The limit of a device's name in bytes: the name is kept with each reply and each record.
  package static let deviceLength = 255

  package init(
    device: String,
    sequence: Int64,
    acknowledged: Int64,
    finishedDevice: String? = nil
  ) {
    self.device = device
    self.sequence = sequence
    self.acknowledged = acknowledged
    self.finishedDevice = finishedDevice
  }

  private enum CodingKeys: String, CodingKey {
    case device, sequence, acknowledged, finishedDevice
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    func number(_ key: CodingKeys) throws -> Int64 {
      let number = try container.decode(Int64.self, forKey: key)
      guard Self.numbers.contains(number) else {
        throw DecodingError.dataCorruptedError(
          forKey: key,
          in: container,
          debugDescription: "Expected a number from 0 to \(Self.numbers.upperBound)"
        )
      }
      return number
    }
    func checked(_ name: String, _ key: CodingKeys) throws -> String {
      guard name.utf8.count <= Self.deviceLength else {
        throw DecodingError.dataCorruptedError(
          forKey: key,
          in: container,
          debugDescription: "A device name has at most \(Self.deviceLength) bytes"
        )
      }
      return name
    }
    device = try checked(container.decode(String.self, forKey: .device), .device)
    finishedDevice = try container.decodeIfPresent(String.self, forKey: .finishedDevice)
      .map { try checked($0, .finishedDevice) }
    sequence = try number(.sequence)
    acknowledged = try number(.acknowledged)
  }

  /// Whether a request may contain the sequence.
  var isValid: Bool {
    device.utf8.count <= Self.deviceLength && Self.numbers.contains(sequence)
      && Self.numbers.contains(acknowledged)
      && finishedDevice.map { $0.utf8.count <= Self.deviceLength } ?? true
  }
}
