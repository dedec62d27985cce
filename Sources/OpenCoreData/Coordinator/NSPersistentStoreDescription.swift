import Foundation

/// The parameters with which a container opens a store.
///
/// ```swift
/// let container = NSPersistentContainer(name: "People", managedObjectModel: newModel)
/// let description = NSPersistentStoreDescription(url: url)
/// description.shouldMigrateStoreAutomatically = true  // both are the defaults
/// description.shouldInferMappingModelAutomatically = true
/// container.persistentStoreDescriptions = [description]
/// var failure: (any Error)?
/// container.loadPersistentStores { _, error in failure = error }
/// if let failure { throw failure }
/// ```
open class NSPersistentStoreDescription: NSObject, NSCopying {
  /// The type of the store.
  open var type = NSSQLiteStoreType
  /// The configuration of the model whose entities the store holds; nil is all entities.
  open var configuration: String?
  /// The URL of the store; an SQLite store at `/dev/null`, or at a name below it, is in memory.
  open var url: URL?
  /// Whether the store is opened in the background.
  open var shouldAddStoreAsynchronously = false
  /// The options of the store by key.
  open private(set) var options: [String: NSObject] = [:]
  /// The options of the CloudKit mirroring; `cloudKitContainerOptions` is kept here.
  package var mirroring: AnyObject?

  /// Describes a store without a file: its URL is `/dev/null`.
  public override init() {
    super.init()
    url = URL(fileURLWithPath: "/dev/null")
    setOption(NSNumber(value: true), forKey: NSMigratePersistentStoresAutomaticallyOption)
    setOption(NSNumber(value: true), forKey: NSInferMappingModelAutomaticallyOption)
  }

  /// Describes an SQLite store in a file.
  public init(url: URL) {
    super.init()
    self.url = url
    setOption(NSNumber(value: true), forKey: NSMigratePersistentStoresAutomaticallyOption)
    setOption(NSNumber(value: true), forKey: NSInferMappingModelAutomaticallyOption)
  }

  /// Sets an option; nil removes it.
  open func setOption(_ option: NSObject?, forKey key: String) {
    options[key] = option
  }

  /// Whether the store refuses saves.
  open var isReadOnly: Bool {
    get { flag(NSReadOnlyPersistentStoreOption) }
    set { setOption(NSNumber(value: newValue), forKey: NSReadOnlyPersistentStoreOption) }
  }

  /// How many seconds to wait for a lock that another connection holds.
  open var timeout: TimeInterval {
    get {
      let option = options[NSPersistentStoreTimeoutOption] as? NSNumber
      return option?.doubleValue ?? StoreSettings.defaultBusyTimeout
    }
    set { setOption(NSNumber(value: newValue), forKey: NSPersistentStoreTimeoutOption) }
  }

  /// Whether a store of an older model version is migrated.
  open var shouldMigrateStoreAutomatically: Bool {
    get { flag(NSMigratePersistentStoresAutomaticallyOption) }
    set {
      setOption(
        NSNumber(value: newValue),
        forKey: NSMigratePersistentStoresAutomaticallyOption
      )
    }
  }

  /// Whether the mapping is inferred where there is no mapping model.
  open var shouldInferMappingModelAutomatically: Bool {
    get { flag(NSInferMappingModelAutomaticallyOption) }
    set { setOption(NSNumber(value: newValue), forKey: NSInferMappingModelAutomaticallyOption) }
  }

  /// The pragmas of an SQLite store.
  open var sqlitePragmas: [String: NSObject] {
    guard let pragmas = options[NSSQLitePragmasOption] as? NSDictionary else { return [:] }
    var result: [String: NSObject] = [:]
    for (key, value) in pragmas {
      if let key = key as? String, let value = value as? NSObject {
        result[key] = value
      } else if let key = key as? String {
        result[key] = NSString(string: "\(value)")
      }
    }
    return result
  }

  /// Sets a pragma of an SQLite store; nil removes it.
  open func setValue(_ value: NSObject?, forPragmaNamed name: String) {
    var pragmas = sqlitePragmas
    pragmas[name] = value
    setOption(NSDictionary(dictionary: pragmas), forKey: NSSQLitePragmasOption)
  }

  private func flag(_ key: String) -> Bool {
    (options[key] as? NSNumber)?.boolValue ?? false
  }

  /// Copies the description.
  open func copy(with zone: NSZone? = nil) -> Any {
    let copy = NSPersistentStoreDescription()
    copy.type = type
    copy.configuration = configuration
    copy.url = url
    copy.shouldAddStoreAsynchronously = shouldAddStoreAsynchronously
    copy.options = options
    copy.mirroring = mirroring
    return copy
  }

  /// Whether the other description opens the same store in the same way.
  open override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? NSPersistentStoreDescription else { return false }
    return other === self
      || type == other.type && configuration == other.configuration && url == other.url
        && shouldAddStoreAsynchronously == other.shouldAddStoreAsynchronously
        && options == other.options && hasMirroring(of: other)
  }

  private func hasMirroring(of other: NSPersistentStoreDescription) -> Bool {
    if mirroring === other.mirroring { return true }
    guard let own = mirroring as? NSObject else { return false }
    return own.isEqual(other.mirroring)
  }

  /// Equal for equal descriptions; it changes with their settings.
  open override var hash: Int {
    var hasher = Hasher()
    hasher.combine(type)
    hasher.combine(configuration)
    hasher.combine(url)
    return hasher.finalize()
  }

  open override var description: String {
    "<NSPersistentStoreDescription: type: \(type), url: \(url?.absoluteString ?? "nil"), "
      + "configuration: \(configuration ?? "nil")>"
  }
}
