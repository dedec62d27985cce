import CloudKitWebServices
import Foundation

/// The sharing state of a record: a root's short ID, or the complete state of a share.
struct RecordSharing: Codable, Hashable, Sendable {
  /// A root's short ID; it is kept when the share ends, so that a new share has the same URL.
  var shortGUID: String?
  /// The record name of the share that begins at this root.
  var share: String?
  /// The state of a share; nil for other records.
  var state: ShareState?

  /// The short IDs that lead to the record, or to the root of the share.
  var shortGUIDs: [String] { [shortGUID, state?.shortGUID].compactMap(\.self) }

  var isEmpty: Bool { self == RecordSharing() }

  /// Throws for a state that has grown over the limit: each request of each participant reads it.
  func checkSize(_ limits: ServiceLimits, before: Int?) throws {
    let size = try WireCoding.encode(self).count
    guard size > limits.shareStateSize, size > before ?? 0 else { return }
    throw ErrorDictionary(
      .badRequest,
      "the participants and requests of a share have at most \(limits.shareStateSize) bytes",
      extension: ErrorExtension(code: .limitExceeded)
    )
  }
}

extension StoredRecord {
  func decodedSharing() throws -> RecordSharing? {
    try sharing.map { try WireCoding.decode(RecordSharing.self, from: $0) }
  }

  var isShare: Bool { type == ShareDictionary.recordType }
}
