import Foundation

/// A store that a coordinator keeps objects in.
open class NSPersistentStore: NSObject, @unchecked Sendable {
  // Sendable: `lock` guards what can be set.

  private let lock = NSLock()
  private var currentIdentifier: String
  private var currentURL: URL?
  private var currentMetadata: [String: Any]
  private var readOnly: Bool
  private var guardedType = NSSQLiteStoreType

  /// The configuration of the model that the store holds the entities of.
  public let configurationName: String
  /// The options that the store was opened with.
  public let options: [AnyHashable: Any]?
  /// The coordinator that the store belongs to.
  public package(set) weak var persistentStoreCoordinator: NSPersistentStoreCoordinator?

  /// Creates a store; subclasses open or create its file.
  public init(
    persistentStoreCoordinator root: NSPersistentStoreCoordinator?,
    configurationName name: String?,
    at url: URL,
    options: [AnyHashable: Any]? = nil
  ) {
    persistentStoreCoordinator = root
    configurationName = name ?? NSManagedObjectModel.defaultConfigurationName
    currentURL = url
    self.options = options
    currentIdentifier = ""
    currentMetadata = [:]
    readOnly = Self.flag(NSReadOnlyPersistentStoreOption, in: options)
    super.init()
  }

  /// The kind of the store, `NSSQLiteStoreType` for one.
  open var type: String { registeredType }

  /// The type that the store's class was registered for when the store was opened.
  var registeredType: String {
    get { lock.withLock { guardedType } }
    set { lock.withLock { guardedType = newValue } }
  }

  /// What tells this store from every other, for as long as its file lives.
  // swift-format-ignore: NeverUseImplicitlyUnwrappedOptionals
  open var identifier: String! {
    get { lock.withLock { currentIdentifier } }
    set { lock.withLock { currentIdentifier = newValue ?? "" } }
  }

  /// Where the store's file is.
  open var url: URL? {
    get { lock.withLock { currentURL } }
    set { lock.withLock { currentURL = newValue } }
  }

  /// Whether nothing can be saved to the store.
  open var isReadOnly: Bool {
    get { lock.withLock { readOnly } }
    set { lock.withLock { readOnly = newValue } }
  }

  /// What the store says about itself: its type, its identifier and the hashes of its model.
  // swift-format-ignore: NeverUseImplicitlyUnwrappedOptionals
  open var metadata: [String: Any]! {
    get { lock.withLock { currentMetadata } }
    set {
      lock.withLock {
        currentMetadata = newValue ?? [:]
        if let identifier = currentMetadata[NSStoreUUIDKey] as? String {
          currentIdentifier = identifier
        }
      }
    }
  }

  /// Reads the metadata from the file.
  open func loadMetadata() throws {
    guard let url else { return }
    metadata = try Self.metadataForPersistentStore(with: url)
  }

  /// Reads the metadata of a store without adding it to a coordinator.
  open class func metadataForPersistentStore(with url: URL) throws -> [String: Any] {
    try SQLiteStore.metadata(at: url)
  }

  /// Replaces the metadata of a store that no coordinator holds.
  open class func setMetadata(
    _ metadata: [String: Any]?,
    forPersistentStoreAt url: URL
  ) throws {
    try SQLiteStore.setMetadata(metadata ?? [:], at: url)
  }

  /// The class of the managers that migrate stores of this class.
  open class func migrationManagerClass() -> AnyClass { NSMigrationManager.self }

  /// Called after the store was added to a coordinator.
  open func didAdd(to coordinator: NSPersistentStoreCoordinator) {
    persistentStoreCoordinator = coordinator
  }

  /// Called before the store is removed from its coordinator.
  open func willRemove(from coordinator: NSPersistentStoreCoordinator?) {
    persistentStoreCoordinator = nil
  }

  /// What a save to a store that is open for reading alone is refused with.
  var readOnlyError: StoreError {
    StoreError(
      .fileWriteNoPermission,
      "The store at \(url?.path ?? "") was opened for reading alone.",
      remedy: "Open it without NSReadOnlyPersistentStoreOption, with history tracking as before.",
      context: [NSFilePathErrorKey: url?.path ?? ""]
    )
  }

  /// Reads an option that may be given as a number or as a Boolean.
  static func flag(_ key: String, in options: [AnyHashable: Any]?) -> Bool {
    switch options?[key] {
    case let value as Bool: value
    case let value as NSNumber: value.boolValue
    case let value as Int: value != 0
    // The history option may carry a dictionary of sub-options, which asks for it too.
    case is [AnyHashable: Any]: true
    default: false
    }
  }
}
