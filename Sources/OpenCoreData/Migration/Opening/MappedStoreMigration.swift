import Foundation
import WatershedSQLite

/// Migrates a store with a mapping model and writes the result into the store's own file.
struct MappedStoreMigration {
  let source: NSManagedObjectModel
  let mapping: NSMappingModel
  let migration: StoreMigration

  func run() throws {
    let url = migration.url
    MigrationLog.note("found mapping model; migrating \(url.path) with NSMigrationManager")
    let replacement = StoreContentsReplacement(
      url: url,
      options: migration.options,
      effects: migration.effects
    )
    do {
      try replacement.run { file, copy in
        // Another process may have migrated the file first.
        guard try !isDone(file) else { return false }
        let keys = try migrate(file, to: copy)
        try MetadataCopy(
          from: url,
          to: copy,
          keys: keys,
          mapping: mapping,
          source: try StoreSchema.resolved(
            model: source,
            members: Set(file.hashes.keys),
            against: file.tables
          ),
          destination: try StoreSchema.new(
            model: migration.model,
            configuration: migration.configuration
          )
        )
        .carry(identifier: file.identifier, metadata: file.metadata)
        return true
      }
    } catch {
      throw wrapped(error)
    }
  }

  private func isDone(_ file: StoreFile) throws -> Bool {
    file.hashes == (StoreMetadata.hashes(of: migration.model, migration.configuration))
  }

  /// Returns the former and the new key of each row.
  private func migrate(_ file: StoreFile, to copy: URL) throws -> [MigratedKey] {
    let manager = NSMigrationManager(sourceModel: source, destinationModel: migration.model)
    manager.effects = migration.effects
    var keys: [MigratedKey] = []
    manager.afterSaving = { associations in
      keys = try associations.pairs.compactMap { try MigratedKey($0.source, $0.destination) }
    }
    try manager.migrate(
      from: MigratedStore(
        url: migration.url,
        type: NSSQLiteStoreType,
        configuration: source.configuration(
          holding: Set(file.hashes.keys),
          preferring: migration.configuration
        )
      ),
      to: MigratedStore(
        url: copy,
        type: NSSQLiteStoreType,
        configuration: migration.configuration
      ),
      with: mapping
    )
    return keys
  }

  private func wrapped(_ error: any Error) -> any Error {
    switch error {
    case is SQLiteError, is StoreError: MigrationError.inPlace(error, at: migration.url)
    default: error
    }
  }
}

/// The former and the new key of one row.
struct MigratedKey {
  let formerEntity: String
  let formerKey: Int64
  let entity: String
  let key: Int64

  /// Returns nil if an object has no row.
  init?(_ source: NSManagedObject, _ destination: NSManagedObject) throws {
    guard let former = Self.key(of: source.objectID),
      let current = Self.key(of: destination.objectID)
    else { return nil }
    formerEntity = source.entity.name ?? ""
    formerKey = former
    entity = destination.entity.name ?? ""
    key = current
  }

  /// The key in `x-coredata://store/Entity/p<key>`.
  private static func key(of identifier: NSManagedObjectID) -> Int64? {
    guard !identifier.isTemporaryID else { return nil }
    return Int64(identifier.uriRepresentation().lastPathComponent.dropFirst())
  }
}
