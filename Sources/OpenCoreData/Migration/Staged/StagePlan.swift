import Foundation

/// The steps that a staged migration takes from a store's version to the app's.
struct StagePlan {
  /// One step of the migration.
  enum Step {
    case lightweight(NSManagedObjectModel)
    case custom(NSCustomMigrationStage)
  }

  let source: NSManagedObjectModel
  let steps: [Step]

  var isCustom: Bool {
    steps.contains { if case .custom = $0 { true } else { false } }
  }

  /// Throws if the store's version is in no stage, or only in one after the app's.
  ///
  /// The carried model is the one that the store contains; nil if it has none that can be read.
  init(
    _ stages: [NSMigrationStage],
    to target: NSManagedObjectModel,
    metadata: [String: Any],
    carried: NSManagedObjectModel?,
    at url: URL
  ) throws {
    let references = Self.references(of: stages)
    let version = try Self.version(in: stages, references, metadata, carried, at: url)
    steps = try Self.steps(from: version, to: target, stages, at: url)
    if let reference = references.first(where: { $0.versionChecksum == version }) {
      source = try reference.resolve()
    } else {
      source = try SourceModel(
        url: url,
        metadata: metadata,
        carried: carried,
        destination: target
      )
      .find()
    }
  }

  private static func references(
    of stages: [NSMigrationStage]
  ) -> [NSManagedObjectModelReference] {
    stages.compactMap { $0 as? NSCustomMigrationStage }.flatMap { [$0.currentModel, $0.nextModel] }
  }

  // MARK: The store's version

  /// The checksum by which the stages know the store's version.
  ///
  /// The checksum in the metadata of a store with a configuration is that of the configuration's
  /// entities, and stages have those of whole models.
  private static func version(
    in stages: [NSMigrationStage],
    _ references: [NSManagedObjectModelReference],
    _ metadata: [String: Any],
    _ carried: NSManagedObjectModel?,
    at url: URL
  ) throws -> String {
    func isStaged(_ checksum: String) -> Bool {
      stages.contains { $0.checksums.contains(checksum) }
    }
    let hashes = NSManagedObjectModel.versionHashes(inStoreMetadata: metadata) ?? [:]
    let own =
      metadata[StoreMetadataKey.versionChecksum] as? String
      ?? NSManagedObjectModel.metadataChecksum(of: hashes)
    if isStaged(own) { return own }
    if let carried, SourceModel.fits(carried, hashes), isStaged(carried.versionChecksum) {
      return carried.versionChecksum
    }
    let comparable = ForeignHashes.translated(hashes)
    let matching = references.last { reference in
      // A version that cannot be found is reported where it is needed.
      guard !hashes.isEmpty, let model = try? reference.resolve() else { return false }
      return comparable.allSatisfy { model.entitiesByName[$0.key]?.versionHash == $0.value }
    }
    if let matching { return matching.versionChecksum }
    throw MigrationError.make(
      NSManagedObjectModelReferenceNotFoundError,
      [
        "reason": "The version of the store, \(carried?.versionChecksum ?? own), is in none of the "
          + "stages.",
        NSLocalizedDescriptionKey: "Staged migration failed: the store's version is unknown.",
        NSFilePathErrorKey: url.path,
      ]
    )
  }

  // MARK: The steps

  private static func steps(
    from version: String,
    to target: NSManagedObjectModel,
    _ stages: [NSMigrationStage],
    at url: URL
  ) throws -> [Step] {
    // If two stages share the version, the later one: the earlier one is complete.
    let first = stages.lastIndex { $0.checksums.contains(version) } ?? stages.startIndex
    let last = stages.lastIndex { $0.checksums.contains(target.versionChecksum) }
    if let last, last < first {
      throw MigrationError.make(
        NSStagedMigrationBackwardMigrationError,
        [
          "reason": "A store file cannot be migrated backwards with staged migration.",
          NSFilePathErrorKey: url.path,
        ]
      )
    }
    var steps: [Step] = []
    var current = version
    for stage in stages[first...] {
      guard let stage = stage as? NSCustomMigrationStage, current != target.versionChecksum,
        current != stage.nextModel.versionChecksum
      else { continue }
      if current != stage.currentModel.versionChecksum {
        steps.append(.lightweight(try stage.currentModel.resolve()))
      }
      steps.append(.custom(stage))
      current = stage.nextModel.versionChecksum
    }
    if current != target.versionChecksum { steps.append(.lightweight(target)) }
    return steps
  }
}
