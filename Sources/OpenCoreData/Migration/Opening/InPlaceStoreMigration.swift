import Effects
import Foundation
import WatershedSQLite

/// Migrates a store's file with SQL in one transaction: a crash leaves either the old store or the
/// new one.
package struct InPlaceStoreMigration {
  let source: NSManagedObjectModel
  let destination: NSManagedObjectModel
  let configuration: String?
  let url: URL
  let options: [AnyHashable: Any]
  let effects: Effects

  package init(
    source: NSManagedObjectModel,
    destination: NSManagedObjectModel,
    configuration: String?,
    url: URL,
    options: [AnyHashable: Any],
    effects: Effects
  ) {
    self.source = source
    self.destination = destination
    self.configuration = configuration
    self.url = url
    self.options = options
    self.effects = effects
  }

  /// Migrates the file; `report` is called with the completed part, from 0 to 1.
  package func run(report: (Float) -> Void = { _ in }) throws {
    try run(StoreFile.inspect(url), report: report)
  }

  /// Throws for differences that `ModelDifference` refuses, before the file is opened for writing.
  func run(_ file: StoreFile, report: (Float) -> Void = { _ in }) throws {
    let hashes = NSManagedObjectModel.versionHashes(inStoreMetadata: file.metadata) ?? [:]
    source.freeze()
    destination.freeze()
    let difference = try ModelDifference(
      from: source.entities.filter { hashes[$0.name ?? ""] != nil },
      to: destination.entities(forConfigurationName: configuration) ?? []
    )
    MigrationLog.note("inferred mapping model; migrating \(url.path) in place")
    let external = ExternalData(storeURL: url, effects: effects)
    var files = ExternalData.Pending()
    var isComplete = false
    do {
      let connection = try StoreSettings(options: options).migratingConnection(to: url)
      try connection.transaction {
        let current = try StoreFile.read(connection, url)
        // Another process may have migrated the file first.
        let found = NSManagedObjectModel.versionHashes(inStoreMetadata: current.metadata)
        guard found == hashes else { return }
        let migration = InPlaceMigration(
          from: try StoreSchema.resolved(
            model: source,
            members: Set(hashes.keys),
            against: current.tables
          ),
          to: try StoreSchema.new(model: destination, configuration: configuration),
          difference: difference,
          file: current.tables,
          connection: connection,
          external: external,
          now: effects.clock.now.timeIntervalSinceReferenceDate
        )
        migration.isDeferred = NSPersistentStore.flag(
          NSPersistentStoreDeferredLightweightMigrationOptionKey,
          in: options
        )
        defer { files = migration.files }
        try migration.run(report: report)
        isComplete = true
      }
      external.settle(files, committed: true)
      MigrationLog.note("in-place migration of \(url.path) succeeded")
    } catch {
      // The pages of a failed commit may be recovered from the log by the next process, which then
      // needs the files.
      if !isComplete { external.settle(files, committed: false) }
      MigrationLog.note("in-place migration of \(url.path) failed: \(error)")
      throw MigrationError.inPlace(error, at: url)
    }
  }
}
