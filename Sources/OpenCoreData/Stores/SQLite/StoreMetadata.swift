import Foundation
import WatershedSQLite

/// The property list in `Z_METADATA`.
enum StoreMetadata {
  /// The known version of the metadata tables, `Z_METADATA.Z_VERSION`.
  static let knownVersion: Int64 = 1
  /// The known version of the hash algorithm.
  static let knownHashesVersion = 3
  /// The release of Core Data whose format is written.
  private static let frameworkVersion = 1344

  /// The metadata of a new store.
  static func new(for schema: StoreSchema) -> [String: Any] {
    var metadata = versions(of: schema.model, configuration: schema.configuration)
    metadata[StoreMetadataKey.autoVacuumLevel] = "2"
    metadata[NSStoreTypeKey] = NSSQLiteStoreType
    return metadata
  }

  /// The entries about the model in the metadata of a store of any type.
  static func versions(of model: NSManagedObjectModel, configuration: String?) -> [String: Any] {
    let hashes = hashes(of: model, configuration)
    let identifiers = model.versionIdentifiers.compactMap { $0.base as? String }.sorted()
    return [
      StoreMetadataKey.versionHashes: hashes,
      StoreMetadataKey.versionHashesVersion: knownHashesVersion,
      StoreMetadataKey.versionHashesDigest: NSManagedObjectModel.metadataDigest(of: hashes),
      StoreMetadataKey.versionChecksum: NSManagedObjectModel.metadataChecksum(of: hashes),
      StoreMetadataKey.versionIdentifiers: identifiers,
      StoreMetadataKey.frameworkVersion: frameworkVersion,
    ]
  }

  /// New metadata with the entries about the model, and about the format, that a file has.
  ///
  /// An app sets metadata that it has read before: another process may have migrated the file in
  /// between, and the file would claim a model that its tables do not have.
  static func keepingModel(of stored: [String: Any], in metadata: [String: Any]) -> [String: Any] {
    var result = metadata
    for key in StoreMetadataKey.model { result[key] = stored[key] ?? metadata[key] }
    return result
  }

  /// The version hashes in the metadata of a store with a configuration.
  static func hashes(
    of model: NSManagedObjectModel,
    _ configuration: String?
  ) -> [String: Data] {
    let entities = model.entities(forConfigurationName: configuration) ?? []
    return Dictionary(
      entities.compactMap { entity in entity.name.map { ($0, entity.versionHash) } },
      uniquingKeysWith: { first, _ in first }
    )
  }

  /// Reads the identifier and the dictionary; nil where the file has no such table or row.
  static func read(
    _ connection: SQLiteConnection
  ) throws -> (version: Int64, identifier: String, metadata: [String: Any])? {
    let hasTable = try connection.scalar(
      "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'Z_METADATA'"
    )
    guard hasTable != nil else { return nil }
    let rows = try connection.query("SELECT Z_VERSION, Z_UUID, Z_PLIST FROM Z_METADATA") {
      ($0.int64(0), $0.text(1), $0.blob(2))
    }
    guard let (version, identifier, data) = rows.first else { return nil }
    let list = try PropertyListSerialization.propertyList(from: data, format: nil)
    guard var metadata = list as? [String: Any] else { return nil }
    metadata[NSStoreUUIDKey] = identifier
    if metadata[NSStoreTypeKey] == nil { metadata[NSStoreTypeKey] = NSSQLiteStoreType }
    return (version, identifier, metadata)
  }

  static func data(_ metadata: [String: Any]) throws -> Data {
    var list = metadata
    // The identifier has a column of its own.
    list[NSStoreUUIDKey] = nil
    return try PropertyListSerialization.data(fromPropertyList: list, format: .binary, options: 0)
  }

  static func write(_ metadata: [String: Any], to connection: SQLiteConnection) throws {
    try connection.run("UPDATE Z_METADATA SET Z_PLIST = ?", [.blob(data(metadata))])
    if let identifier = metadata[NSStoreUUIDKey] as? String, !identifier.isEmpty {
      try connection.run("UPDATE Z_METADATA SET Z_UUID = ?", [.text(identifier)])
    }
  }
}
