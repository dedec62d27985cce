import Foundation

/// Leads a store through the versions of a model, stage by stage.
///
/// Give it to a store under `NSPersistentStoreStagedMigrationManagerOptionKey`. The stages up to the
/// version that the store has are skipped.
///
/// **Differs from Core Data:** custom stages work on a copy of the store, which takes the store's
/// place in one transaction when the last stage is done. A crash on the way leaves the old store.
open class NSStagedMigrationManager: NSObject, @unchecked Sendable {
  // Sendable: the container is set by the one thread that migrates, and used in its handlers.

  /// The stages, in the order in which they run.
  public let stages: [NSMigrationStage]
  /// The store while a handler of a custom stage runs; nil at any other time.
  open internal(set) var container: NSPersistentContainer?

  /// Creates a manager for stages in their order.
  ///
  /// A version that two stages claim stops the program; a version that ends one stage and begins the
  /// next belongs to both.
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
