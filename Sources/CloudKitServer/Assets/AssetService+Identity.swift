import Effects
import Foundation

/// The asset store that belongs to the data.
extension AssetService {
  /// Records the asset store's identity if the data has none; throws for another store than the
  /// data's.
  ///
  /// The store gets its identity first: after a crash between the two steps, the next start records
  /// it.
  func bindStore() async throws {
    let known = try storage.changeFingerprints { $0.assetStore }
    var found = try await store.identity()
    if found == nil, known == nil {
      try await store.keep(identity: effects.randomness.bytes(16).hexadecimal)
      found = try await store.identity()
    }
    guard let found else { throw AssetStoreMismatch(isEmpty: true) }
    let bound = try storage.changeFingerprints { fingerprints in
      if fingerprints.assetStore == nil { fingerprints.assetStore = found }
      return fingerprints.assetStore
    }
    guard bound == found else { throw AssetStoreMismatch(isEmpty: false) }
  }
}

/// The asset store of a server does not belong to the data that it opens.
package struct AssetStoreMismatch: Error, Hashable, CustomStringConvertible {
  /// Whether the store has no identity, such as a new or unmounted folder.
  package var isEmpty: Bool

  package var description: String {
    (isEmpty
      ? "The asset store has never held this data's files: a new folder or bucket, or one that is "
        + "not mounted."
      : "The asset store belongs to the data of another database.")
      + " All servers of a database share one asset store: give this server the same bucket, with s3 "
      + "in the configuration, or the same folder. If the files are lost for good: watershed storage "
      + "adopt."
  }
}
