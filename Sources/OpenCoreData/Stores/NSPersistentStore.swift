import Foundation

/// A persistent store of a coordinator.
open class NSPersistentStore: NSObject, @unchecked Sendable {
  // Sendable: `lock` guards the mutable state.

  private let lock = NSLock()
  private var currentIdentifier: String
  private var currentURL: URL?
  private var currentMetadata: [String: Any]
  private var readOnly: Bool
  private var guardedType = NSSQLiteStoreType

  /// The name of the model's configuration whose entities the store has.
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

  /// The type of the store, such as `NSSQLiteStoreType`.
  open var type: String { registeredType }

  /// The type for which the store's class was registered when the store was opened.
  var registeredType: String {
    get { lock.withLock { guardedType } }
    set { lock.withLock { guardedType = newValue } }
  }

  /// The unique identifier of the store.
  // swift-format-ignore: NeverUseImplicitlyUnwrappedOptionals
  open var identifier: String! {
    get { lock.withLock { currentIdentifier } }
    set { lock.withLock { currentIdentifier = newValue ?? "" } }
  }

  /// The URL of the store's file.
  open var url: URL? {
    get { lock.withLock { currentURL } }
    set { lock.withLock { currentURL = newValue } }
  }

  /// Whether the store is read only.
  open var isReadOnly: Bool {
    get { lock.withLock { readOnly } }
    set { lock.withLock { readOnly = newValue } }
  }

  /// The metadata of the store: its type, its identifier and the version hashes of its model.
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

  /// Replaces the metadata of a store without a coordinator.
  open class func setMetadata(
    _ metadata: [String: Any]?,
    forPersistentStoreAt url: URL
  ) throws {
    try SQLiteStore.setMetadata(metadata ?? [:], at: url)
  }

  /// The migration manager class for stores of this class.
  open class func migrationManagerClass() -> AnyClass { NSMigrationManager.self }

  /// Called after the store was added to a coordinator.
  open func didAdd(to coordinator: NSPersistentStoreCoordinator) {
    persistentStoreCoordinator = coordinator
  }

  /// Called before the store is removed from its coordinator.
  open func willRemove(from coordinator: NSPersistentStoreCoordinator?) {
    persistentStoreCoordinator = nil
  }

  /// The error of a save to a store that was opened read only.
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
    // The history option may be a dictionary of sub-options, which also enables it.
    case is [AnyHashable: Any]: true
    default: false
    }
  }
}
