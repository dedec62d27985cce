import CloudKitWebServices
import Foundation

/// What sharing keeps with a record: a root's short ID, or all that a share is.
struct RecordSharing: Codable, Hashable, Sendable {
  /// A root's; it stays when the share ends, so that a new share has the same address.
  var shortGUID: String?
  /// Of a root: the share that begins here.
  var share: String?
  /// Of a share itself.
  var state: ShareState?

  var isEmpty: Bool { self == RecordSharing() }
}

extension StoredRecord {
  func decodedSharing() throws -> RecordSharing? {
    try sharing.map { try WireCoding.decode(RecordSharing.self, from: $0) }
  }

  var isShare: Bool { type == ShareDictionary.recordType }
}
