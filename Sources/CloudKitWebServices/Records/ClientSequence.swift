import Foundation

/// A device's number for one batch, so that a batch whose reply was lost can be repeated.
///
/// The server keeps the reply of (user, database, device, sequence) until a later request
/// acknowledges it.
package struct ClientSequence: Codable, Hashable, Sendable {
  package var device: String
  package var sequence: Int64
  /// The client has received the replies up to and including this number; they need not be kept.
  package var acknowledged: Int64

  /// The allowed numbers: those that every JSON reader reads exactly, so that the server's
  /// arithmetic can't overflow.
  package static let numbers: ClosedRange<Int64> = 0...(1 << 53)
  /// The limit of a device's name in bytes: the name is kept with each reply and each record.
  package static let deviceLength = 255

  package init(
    device: String,
    sequence: Int64,
    acknowledged: Int64
  ) {
    self.device = device
    self.sequence = sequence
    self.acknowledged = acknowledged
  }

  private enum CodingKeys: String, CodingKey { case device, sequence, acknowledged }

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
    device = try container.decode(String.self, forKey: .device)
    guard device.utf8.count <= Self.deviceLength else {
      throw DecodingError.dataCorruptedError(
        forKey: .device,
        in: container,
        debugDescription: "A device name has at most \(Self.deviceLength) bytes"
      )
    }
    sequence = try number(.sequence)
    acknowledged = try number(.acknowledged)
  }

  /// Whether a request may contain the sequence.
  var isValid: Bool {
    device.utf8.count <= Self.deviceLength && Self.numbers.contains(sequence)
      && Self.numbers.contains(acknowledged)
  }
}
