import Foundation

/// The status of a store's mirroring.
package struct MirroringStatus: Sendable {
  /// An object that the server refused.
  package struct Parked: Sendable, Hashable {
    package var recordName: String
    package var entityName: String
    package var reason: String
  }

  package var storeIdentifier: String
  package var isSetUp: Bool
  /// Whether no work is requested or in progress.
  package var isIdle: Bool
  /// The number of records and edges that have not reached the server yet.
  package var pendingCount: Int
  /// The number of links to objects that have not been imported, or that another device deleted.
  package var parkedLinkCount: Int
  /// Records that the server refused, with its reasons; the first hundred.
  package var parked: [Parked]
  /// The number of objects or links that the last read of the whole zone did not return and that
  /// were kept, because they were too many to have been deleted.
  package var keptMissingCount: Int
  package var lastError: (any Error)?
  /// When a pause after a failure ends.
  package var pausedUntil: Date?
  package var lastImport: Date?
  package var lastExport: Date?
}
