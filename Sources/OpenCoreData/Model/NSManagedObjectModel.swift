import Foundation

/// A description of all the entities that an app works with.
///
/// ```swift
/// let model = NSManagedObjectModel()
/// model.entities = [note]
/// ```
open class NSManagedObjectModel: NSObject, NSCopying, @unchecked Sendable {
  // Sendable: settable by one thread while it is being built, read-only once frozen; freezing is
  // guarded by a lock.

  /// Texts that identify versions of the model.
  open var versionIdentifiers: Set<AnyHashable> = [] { willSet { requireEditable() } }
  /// Translations of names and messages.
  open var localizationDictionary: [String: String]?

  /// The fetch requests of the model file by name, as values.
  package var requestTemplates: [String: FetchRequestTemplate] = [:]
  /// The requests that were set in code, which can express more than a model file.
  var requests: [String: NSFetchRequest<any NSFetchRequestResult>] = [:]
  /// The configurations that the editor marked "used with CloudKit".
  package var cloudKitConfigurations: Set<String> = [] { willSet { requireEditable() } }
  /// Whether the whole model is marked "used with CloudKit".
  package var isUsedWithCloudKit = false { willSet { requireEditable() } }
  /// The file that the model was read from, for error messages.
  package var sourceURL: URL?
  /// Whether the model is in use, so that nothing can be changed any more.
  package private(set) var isFrozen = false

  private var allEntities: [NSEntityDescription] = []
  private var configurationEntities: [String: [NSEntityDescription]] = [:]
  private let freezing = NSRecursiveLock()
  private var frozenEntities: [String: NSEntityDescription] = [:]
  private var frozenHashes: [String: Data]?

  /// The name of the configuration that holds every entity.
  package static let defaultConfigurationName = "PF_DEFAULT_CONFIGURATION_NAME"

  /// Creates a model without entities.
  public required override init() {
    super.init()
    CompoundPredicateMethods.install()
  }

  // MARK: Entities

  /// The entities of the model, including subentities.
  open var entities: [NSEntityDescription] {
    get { allEntities }
    set {
      requireEditable()
      for entity in allEntities { entity.modelReference = nil }
      allEntities = []
      for entity in newValue { adopt(entity) }
    }
  }

  /// The entities of the model by name.
  open var entitiesByName: [String: NSEntityDescription] {
    if isFrozen { return frozenEntities }
    return Dictionary(
      allEntities.compactMap { entity in entity.name.map { ($0, entity) } },
      uniquingKeysWith: { first, _ in first }
    )
  }

  /// Adds an entity and its subentities, unless the model has them already.
  func adopt(_ entity: NSEntityDescription) {
    if !allEntities.contains(where: { $0 === entity }) {
      allEntities.append(entity)
    }
    entity.modelReference = self
    for child in entity.subentities where child.modelReference !== self { adopt(child) }
  }

  /// Moves all contents of a model that has no other user to this one.
  func take(_ model: NSManagedObjectModel) {
    let entities = model.entities
    let configurations = model.configurationEntities
    model.entities = []
    self.entities = entities
    configurationEntities = configurations
    versionIdentifiers = model.versionIdentifiers
    localizationDictionary = model.localizationDictionary
    requestTemplates = model.requestTemplates
    requests = model.requests
    cloudKitConfigurations = model.cloudKitConfigurations
    isUsedWithCloudKit = model.isUsedWithCloudKit
    sourceURL = model.sourceURL
  }

  // MARK: Configurations

  /// The names of the configurations, sorted.
  open var configurations: [String] {
    configurationEntities.keys.sorted(by: VersionHash.precedes)
  }

  /// The entities of a configuration; nil stands for the default one, which has all entities.
  open func entities(forConfigurationName configuration: String?) -> [NSEntityDescription]? {
    guard let configuration, configuration != Self.defaultConfigurationName else {
      return allEntities
    }
    return configurationEntities[configuration]
  }

  /// Sets the entities of a configuration.
  open func setEntities(
    _ entities: [NSEntityDescription],
    forConfigurationName configuration: String
  ) {
    requireEditable()
    configurationEntities[configuration] = entities
  }

  // MARK: Versions

  /// The version hash of each entity.
  open var entityVersionHashesByName: [String: Data] {
    frozenHashes ?? entitiesByName.mapValues(\.versionHash)
  }

  /// The checksum of the whole model, which staged migrations use.
  open var versionChecksum: String {
    VersionHash.checksum(of: entityVersionHashesByName)
  }

  /// The digest in a store's metadata, next to the hashes.
  package static func metadataDigest(of hashes: [String: Data]) -> String {
    VersionHash.metadataDigest(of: hashes)
  }

  /// The checksum in a store's metadata, next to the hashes.
  package static func metadataChecksum(of hashes: [String: Data]) -> String {
    VersionHash.checksum(of: hashes)
  }

  /// Whether a configuration matches a store exactly.
  ///
  /// An entity with a derived or composite attribute in a store of Core Data's is compared by the copy
  /// of the model that the store carries, once this process has read the store or its metadata.
  open func isConfiguration(
    withName configuration: String?,
    compatibleWithStoreMetadata metadata: [String: Any]
  ) -> Bool {
    guard let entities = entities(forConfigurationName: configuration),
      let stored = Self.versionHashes(inStoreMetadata: metadata)
    else { return false }
    let ours = Dictionary(
      entities.compactMap { entity in entity.name.map { ($0, entity.versionHash) } },
      uniquingKeysWith: { first, _ in first }
    )
    return ours == stored || ours == ForeignHashes.translated(stored)
  }

  /// The entity hashes of a store's metadata.
  package static func versionHashes(inStoreMetadata metadata: [String: Any]) -> [String: Data]? {
    guard let hashes = metadata["NSStoreModelVersionHashes"] else { return nil }
    if let hashes = hashes as? [String: Data] { return hashes }
    guard let hashes = hashes as? [String: Any] else { return nil }
    let data = hashes.compactMapValues { $0 as? Data }
    return data.count == hashes.count ? data : nil
  }

  // MARK: Freezing

  /// Makes the model immutable, because a store or an object uses it.
  package func freeze() {
    freezing.withLock {
      guard !isFrozen else { return }
      if let defect { fatalError(defect) }
      for case let relationship as NSRelationshipDescription in allEntities.flatMap(\.ownProperties)
      {
        relationship.settleReferences()
      }
      let hashes = entityVersionHashesByName
      frozenEntities = entitiesByName
      let byDepth = allEntities.map { (depth: $0.ancestors.count, entity: $0) }
        .sorted { $0.depth < $1.depth }
      for (_, entity) in byDepth { entity.freeze(in: self) }
      for (_, entity) in byDepth { entity.compileLayout() }
      frozenHashes = hashes
      isFrozen = true
    }
  }

  /// Copies the model with all its entities; the copy can be changed.
  open func copy(with zone: NSZone? = nil) -> Any {
    let copy = type(of: self).init()
    ModelCopier.copy(self, into: copy)
    return copy
  }

  /// Whether the other model has equal entities, configurations and fetch requests.
  open override func isEqual(_ object: Any?) -> Bool { describesTheSame(as: object) }

  /// Equal for equal descriptions.
  open override var hash: Int { Set(entitiesByName.keys).hashValue }

  func requireEditable() {
    if isFrozen { fatalError("Can't modify an immutable model.") }
  }

  var configurationEntityNames: [String: [String]] {
    configurationEntities.mapValues { $0.compactMap(\.name) }
  }
}
