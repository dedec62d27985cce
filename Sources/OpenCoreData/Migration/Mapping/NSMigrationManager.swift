import Effects
import Foundation

/// Migrates a store by a mapping model, object by object, into a new store.
///
/// ```swift
/// let manager = NSMigrationManager(sourceModel: oldModel, destinationModel: newModel)
/// try manager.migrateStore(
///   from: oldURL,
///   type: .sqlite,
///   mapping: mapping,
///   to: newURL,
///   type: .sqlite
/// )
/// ```
///
/// The objects on both sides are plain `NSManagedObject` ones: an app's classes are written for its
/// newest model, and earlier versions need not have the properties that their methods use.
///
/// The manager is used on one thread. While it migrates, both contexts belong to that thread, so
/// policies use them without `perform`.
open class NSMigrationManager: NSObject, @unchecked Sendable {
  // Sendable: used by one thread, as with Apple; only the progress is read by others.

  /// The model of the source store.
  public let sourceModel: NSManagedObjectModel
  /// The model of the destination store.
  public let destinationModel: NSManagedObjectModel
  /// Values that the app passes to its policies.
  open var userInfo: [AnyHashable: Any]? {
    // The property is computed: one statement of a policy may read and change it.
    get { notes }
    set { notes = newValue }
  }
  private var notes: [AnyHashable: Any]?
  /// Whether a store that can migrate itself does so if the mapping was inferred.
  ///
  /// An SQLite store migrates itself with SQL and keeps its object identifiers. An inferred mapping
  /// that was changed, for example by a policy, is executed object by object.
  open var usesStoreSpecificMigrationManager = true

  var effects = Effects.live
  /// Called after the destination is saved, while both contexts still exist.
  var afterSaving: ((MigrationAssociations) throws -> Void)?
  var associations = MigrationAssociations()
  var run: MigrationRun?
  private let progress = MigrationProgress()
  var cancellation: (any Error)?

  /// Creates a manager for a migration between two models.
  public init(
    sourceModel: NSManagedObjectModel,
    destinationModel: NSManagedObjectModel
  ) {
    self.sourceModel = sourceModel
    self.destinationModel = destinationModel
    super.init()
  }

  /// The mapping model of the migration in progress; an empty one if there is none.
  open var mappingModel: NSMappingModel { run?.mappingModel ?? NSMappingModel() }

  /// The context of the source objects.
  open var sourceContext: NSManagedObjectContext { requireRun().sourceContext }

  /// The context of the destination objects.
  open var destinationContext: NSManagedObjectContext { requireRun().destinationContext }

  /// The entity mapping that is being executed.
  open var currentEntityMapping: NSEntityMapping {
    run?.currentMapping ?? NSEntityMapping()
  }

  /// The completed part, from 0 to 1; it may be read on any thread.
  ///
  /// **Differs from Core Data:** the value cannot be observed with key-value observing on Linux; a subclass
  /// overrides `didChangeValue(forKey:)`.
  open var migrationProgress: Float { progress.value }

  func report(_ value: Float) {
    willChangeValue(forKey: Self.progressKey)
    progress.value = value
    didChangeValue(forKey: Self.progressKey)
  }

  private static let progressKey = "migrationProgress"

  /// Called before the progress changes, with the key "migrationProgress"; this one does nothing.
  open func willChangeValue(forKey key: String) {}

  /// Called after the progress has changed, with the key "migrationProgress"; this one does nothing.
  open func didChangeValue(forKey key: String) {}

  private func requireRun() -> MigrationRun {
    guard let run else {
      preconditionFailure("A migration manager has contexts while it migrates only.")
    }
    return run
  }

  // MARK: Migrating

  /// Migrates a store into a new one at another URL.
  ///
  /// Throws `NSMigrationManagerSourceStoreError` or `NSMigrationManagerDestinationStoreError` if a
  /// store cannot be opened or saved, `NSEntityMigrationPolicyError` if a policy throws, with its
  /// error as the underlying one, and the error of `cancelMigrationWithError(_:)` unchanged. The
  /// source is only read; an incomplete destination is removed. A source with the entities of one
  /// configuration becomes a store with the configuration of this name.
  open func migrateStore(
    from sourceURL: URL,
    sourceType sStoreType: String,
    options sOptions: [AnyHashable: Any]? = nil,
    with mappings: NSMappingModel?,
    toDestinationURL dURL: URL,
    destinationType dStoreType: String,
    destinationOptions dOptions: [AnyHashable: Any]? = nil
  ) throws {
    var source = MigratedStore(url: sourceURL, type: sStoreType, options: sOptions ?? [:])
    source.configuration = source.entityNames.flatMap {
      sourceModel.configuration(holding: $0, preferring: nil)
    }
    let destination = MigratedStore(
      url: dURL,
      type: dStoreType,
      options: dOptions ?? [:],
      configuration: destinationModel.known(source.configuration)
    )
    try migrate(from: source, to: destination, with: mappings)
  }

  /// Migrates a store into a new one at another URL.
  ///
  /// See `migrateStore(from:sourceType:options:with:toDestinationURL:destinationType:destinationOptions:)`.
  open func migrateStore(
    from sourceURL: URL,
    type sourceType: NSPersistentStore.StoreType,
    options sourceOptions: [AnyHashable: Any]? = nil,
    mapping: NSMappingModel,
    to destinationURL: URL,
    type destinationType: NSPersistentStore.StoreType,
    options destinationOptions: [AnyHashable: Any]? = nil
  ) throws {
    try migrateStore(
      from: sourceURL,
      sourceType: sourceType.rawValue,
      options: sourceOptions,
      with: mapping,
      toDestinationURL: destinationURL,
      destinationType: destinationType.rawValue,
      destinationOptions: destinationOptions
    )
  }

  // MARK: Entities

  /// The entity whose objects a mapping migrates.
  open func sourceEntity(for mEntity: NSEntityMapping) -> NSEntityDescription? {
    let model = run?.sourceContext.persistentStoreCoordinator?.managedObjectModel ?? sourceModel
    return mEntity.sourceEntityName.flatMap { model.entitiesByName[$0] }
  }

  /// The entity that a mapping migrates objects to.
  open func destinationEntity(for mEntity: NSEntityMapping) -> NSEntityDescription? {
    let model =
      run?.destinationContext.persistentStoreCoordinator?.managedObjectModel ?? destinationModel
    return mEntity.destinationEntityName.flatMap { model.entitiesByName[$0] }
  }

  // MARK: Associations

  /// Records the destination object of a source object, for the relationships that refer to it.
  open func associate(
    sourceInstance: NSManagedObject,
    withDestinationInstance destinationInstance: NSManagedObject,
    for entityMapping: NSEntityMapping
  ) {
    associations.associate(sourceInstance, destinationInstance, present(entityMapping))
  }

  /// The mapping of the migration in progress: the object itself, or the one of its name.
  private func present(_ mapping: NSEntityMapping) -> NSEntityMapping {
    if mapping === run?.currentMapping { return mapping }
    let mappings = run?.mappingModel.entityMappings ?? []
    return mappings.first { $0 === mapping } ?? mappings.first { $0.name == mapping.name }
      ?? mapping
  }

  /// The destination objects of source objects by a mapping; nil for all that the mapping created.
  open func destinationInstances(
    forEntityMappingName mappingName: String,
    sourceInstances: [NSManagedObject]?
  ) -> [NSManagedObject] {
    associations.destinations(of: sourceInstances, named: mappingName)
  }

  /// The source objects of destination objects by a mapping; nil for all that the mapping migrated.
  open func sourceInstances(
    forEntityMappingName mappingName: String,
    destinationInstances: [NSManagedObject]?
  ) -> [NSManagedObject] {
    associations.sources(of: destinationInstances, named: mappingName)
  }

  // MARK: Functions

  /// Evaluates a function of a subclass that a value expression calls on the manager, `FUNCTION($manager,
  /// "fullName:", $source)`.
  ///
  /// **Differs from Core Data:** Swift on Linux calls no method by its name, so a manager with functions of its
  /// own overrides this method and selects them by `name`.
  open func perform(_ name: String, arguments: [Any?]) throws -> Any? {
    throw MigrationError.make(
      NSMigrationError,
      ["reason": "-[\(type(of: self)) \(name)]: unrecognized selector"]
    )
  }

  // MARK: Stopping

  /// Stops the migration in progress, which throws the error.
  ///
  /// The source store is not changed.
  open func cancelMigrationWithError(_ error: any Error) {
    cancellation = error
  }

  /// Discards associations, contexts and progress, before another migration with this manager.
  open func reset() {
    run = nil
    associations = MigrationAssociations()
    cancellation = nil
    report(0)
  }
}

extension NSMigrationManager: KeyValueCoding {
  /// The values of the key paths in value expressions, as in `$manager.sourceContext`.
  package func value(forKey key: String) -> Any? {
    switch key {
    case "sourceContext": sourceContext
    case "destinationContext": destinationContext
    case "sourceModel": sourceModel
    case "destinationModel": destinationModel
    case "mappingModel": mappingModel
    case "currentEntityMapping": currentEntityMapping
    case "userInfo": userInfo
    case "migrationProgress": NSNumber(value: migrationProgress)
    default: nil
    }
  }
}

extension NSMigrationManager: SelectorResponding {
  /// The methods that value expressions call.
  package func respond(to selector: String, arguments: [Any?]) throws -> Any? {
    let name = arguments.first.flatMap { $0 } as? String ?? ""
    let second = arguments.count > 1 ? arguments[1] : nil
    switch selector {
    case "sourceContext", "destinationContext", "userInfo": return value(forKey: selector)
    case MigrationSelector.destinations:
      return destinationInstances(
        forEntityMappingName: name,
        sourceInstances: MappingValues.objects(in: second)
      )
    case MigrationSelector.destinationsForRelationship:
      return associations.destinations(of: MappingValues.objects(in: second))
    case MigrationSelector.sources:
      return sourceInstances(
        forEntityMappingName: name,
        destinationInstances: MappingValues.objects(in: second)
      )
    case MigrationSelector.fetchRequest:
      let request = NSFetchRequest<NSManagedObject>(entityName: name)
      request.includesSubentities = false
      if let format = second as? String, format != "TRUEPREDICATE" {
        request.predicate = NSPredicate(format: format)
      }
      return request
    case MigrationSelector.unreadable:
      throw MigrationError.make(
        NSMigrationError,
        [
          "reason": "The mapping '\(currentEntityMapping.name ?? "")' has an archived \(name) that "
            + "cannot be read. Set an expression in code, or a policy."
        ]
      )
    default: return try perform(selector, arguments: arguments)
    }
  }
}
