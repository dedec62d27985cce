import Foundation

/// A stage between two versions of a model before and after which the app runs code of its own.
///
/// ```swift
/// let filling = NSCustomMigrationStage(
///   migratingFrom: NSManagedObjectModelReference(
///     model: oldModel,
///     versionChecksum: oldModel.versionChecksum
///   ),
///   to: NSManagedObjectModelReference(
///     model: newModel,
///     versionChecksum: newModel.versionChecksum
///   )
/// )
/// filling.didMigrateHandler = { manager, stage in
///   let context = manager.container?.newBackgroundContext()
///   try context?.performAndWait { try context?.save() }  // after edits of the app's own
/// }
/// ```
open class NSCustomMigrationStage: NSMigrationStage {
  /// The version that the stage starts from.
  public let currentModel: NSManagedObjectModelReference
  /// The version at which the stage ends.
  public let nextModel: NSManagedObjectModelReference
  /// Called before the migration; the manager's container has the store with the current model.
  open var willMigrateHandler: ((NSStagedMigrationManager, NSCustomMigrationStage) throws -> Void)?
  /// Called after the migration; the manager's container has the store with the next model.
  open var didMigrateHandler: ((NSStagedMigrationManager, NSCustomMigrationStage) throws -> Void)?

  /// Creates a stage from one version to the next.
  public init(
    migratingFrom currentModel: NSManagedObjectModelReference,
    to nextModel: NSManagedObjectModelReference
  ) {
    self.currentModel = currentModel
    self.nextModel = nextModel
    super.init()
  }

  override var checksums: [String] { [currentModel.versionChecksum, nextModel.versionChecksum] }
}
