import Foundation

/// A device's number for one batch, so that a batch whose reply was lost can be repeated.
///
/// The server keeps the reply of (user, database, device, sequence) until a later request acknowledges it.
package struct ClientSequence: Codable, Hashable, Sendable {
  package var device: String
  package var sequence: Int64
  /// Replies up to and with this number have arrived and need not be kept.
  package var acknowledged: Int64

  package init(
    device: String,
    sequence: Int64,
    acknowledged: Int64
  ) {
    self.device = device
    self.sequence = sequence
    self.acknowledged = acknowledged
  }
}
