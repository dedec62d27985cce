import Foundation

/// How the mirroring of a store stands.
package struct MirroringStatus: Sendable {
  /// An object that the server refused.
  package struct Parked: Sendable, Hashable {
    package var recordName: String
    package var entityName: String
    package var reason: String
  }

  package var storeIdentifier: String
  package var isSetUp: Bool
  /// Whether nothing is wanted or running.
  package var isIdle: Bool
  /// Records and edges that have still to reach the server.
  package var pendingCount: Int
  /// Links that wait for objects that are not here.
  package var parkedLinkCount: Int
  /// Records that the server refused, with its reasons; the first hundred.
  package var parked: [Parked]
  /// How many objects or links the last reading of the whole zone did not meet and kept, because they
  /// were too many to have been deleted.
  package var keptMissingCount: Int
  package var lastError: (any Error)?
  /// When a pause after a failure ends.
  package var pausedUntil: Date?
  package var lastImport: Date?
  package var lastExport: Date?
}
