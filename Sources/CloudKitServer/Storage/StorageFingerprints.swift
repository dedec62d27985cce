/// The keys and the asset store that belong to the data in a database.
///
/// Both are kept outside the database. A server that opens the database with other keys, or with
/// another asset store, would write values and files that the database's other servers cannot read;
/// it compares them with these and refuses to start.
package struct StorageFingerprints: Codable, Hashable, Sendable {
  /// The fingerprint of each key for encrypted fields, by the key's ID; see `KeyRing.fingerprints`.
  package var fieldKeys: [String: String] = [:]
  /// The identity of the asset store; nil until a server with an asset store has started.
  package var assetStore: String?

  package init() {}
}
