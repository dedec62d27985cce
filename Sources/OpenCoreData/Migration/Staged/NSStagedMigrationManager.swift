import Foundation

/// Migrates a store through the versions of a model, stage by stage.
///
/// ```swift
/// let adding = NSLightweightMigrationStage([firstModel.versionChecksum])
/// let splitting = NSCustomMigrationStage(
///   migratingFrom: NSManagedObjectModelReference(
///     model: secondModel,
///     versionChecksum: secondModel.versionChecksum
///   ),
///   to: NSManagedObjectModelReference(
///     model: thirdModel,
///     versionChecksum: thirdModel.versionChecksum
///   )
/// )
/// splitting.willMigrateHandler = { manager, _ in
///   guard let context = manager.container?.newBackgroundContext() else { return }
///   try context.performAndWait {
///     let request = NSFetchRequest<NSManagedObject>(entityName: "Person")
///     for person in try context.fetch(request) {
///       let name = person.value(forKey: "name") as? String ?? ""
///       let parts = name.split(separator: " ", maxSplits: 1).map(String.init)
///       person.setValue(parts.first, forKey: "given")
///       person.setValue(parts.count > 1 ? parts[1] : nil, forKey: "family")
///     }
///     try context.save()
///   }
/// }
/// let description = NSPersistentStoreDescription(url: url)
/// description.setOption(
///   NSStagedMigrationManager([adding, splitting]),
///   forKey: NSPersistentStoreStagedMigrationManagerOptionKey
/// )
/// ```
///
/// Pass it to a store under `NSPersistentStoreStagedMigrationManagerOptionKey`. The stages up to
/// the store's version are skipped.
///
/// **Differs from Core Data:** custom stages work on a copy of the store, which replaces the store
/// in one transaction after the last stage. A crash before that leaves the old store.
open class NSStagedMigrationManager: NSObject, @unchecked Sendable {
  // Sendable: the container is set by the migrating thread, and used in its handlers.

  /// The stages, in the order in which they run.
  public let stages: [NSMigrationStage]
  /// The store while a handler of a custom stage runs; nil at any other time.
  open internal(set) var container: NSPersistentContainer?

  /// Creates a manager with stages in their order.
  ///
  /// A version in two stages stops the program, except that the last version of one stage may be
  /// the first of the next.
  public init(_ stages: [NSMigrationStage]) {
    self.stages = stages
    super.init()
    var seen: Set<String> = []
    var previous: NSMigrationStage?
    for stage in stages {
      for (index, checksum) in stage.checksums.enumerated() {
        let isContinued =
          index == 0 && previous?.checksums.last == checksum
        precondition(
          seen.insert(checksum).inserted || isContinued,
          "Duplicate version checksums across stages detected."
        )
      }
      previous = stage
    }
  }
}
