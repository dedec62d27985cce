import Foundation

extension NSPersistentStore {
  /// The type of a store, as a structure.
  public struct StoreType: RawRepresentable, Hashable, Sendable {
    /// The type's name.
    public var rawValue: String

    /// Wraps a name.
    public init(rawValue: String) {
      self.rawValue = rawValue
    }

    /// A store in an SQLite file.
    public static let sqlite = StoreType(rawValue: NSSQLiteStoreType)
    /// A store that lives as long as the process.
    public static let inMemory = StoreType(rawValue: NSInMemoryStoreType)
    /// A store in one binary file.
    public static let binary = StoreType(rawValue: NSBinaryStoreType)
    /// A store in one XML file.
    public static let xml = StoreType(rawValue: NSXMLStoreType)
  }
}

extension NSPersistentStoreCoordinator {
  /// Opens a store, or creates it, and adds it.
  @discardableResult
  public func addPersistentStore(
    ofType storeType: String,
    configurationName configuration: String?,
    at storeURL: URL?,
    options: [AnyHashable: Any]? = nil
  ) throws -> NSPersistentStore {
    if let defect = managedObjectModel.defect {
      throw CoreDataError.make(NSPersistentStoreIncompatibleSchemaError, defect)
    }
    let url = try place(of: storeType, storeURL)
    if storeType == NSSQLiteStoreType, !StorePlace.isInMemory(url), persistentStore(for: url) != nil
    {
      throw CoreDataError.make(
        Self.addedTwiceCode,
        "Can't add the same store twice: \(url.path).",
        [NSFilePathErrorKey: url.path, "NSUnderlyingException": "Can't add the same store twice"]
      )
    }
    if let configuration, managedObjectModel.entities(forConfigurationName: configuration) == nil {
      throw CoreDataError.make(
        NSPersistentStoreOpenError,
        "Unable to find a configuration named '\(configuration)' in the model. It has: "
          + "\(managedObjectModel.configurations.joined(separator: ", "))."
      )
    }
    do {
      return try open(storeType, configuration, url, options)
    } catch {
      throw CoreDataError.facade(error)
    }
  }

  /// Core Data's unnamed code for a store that the coordinator has already.
  private static let addedTwiceCode = 134_081

  private func open(
    _ storeType: String,
    _ configuration: String?,
    _ url: URL,
    _ options: [AnyHashable: Any]?
  ) throws -> NSPersistentStore {
    if let custom = StoreClasses.shared.customClass(of: storeType) {
      return try open(custom, storeType, configuration, url, options)
    }
    let store = try sqliteStore(storeType, configuration, url, options)
    add(store)
    return store
  }

  func sqliteStore(
    _ storeType: String,
    _ configuration: String?,
    _ url: URL,
    _ options: [AnyHashable: Any]?
  ) throws -> SQLiteStore {
    try SQLiteStore(
      model: managedObjectModel,
      configuration: configuration,
      url: url,
      options: options ?? [:],
      effects: effects,
      type: storeType
    )
  }

  func place(of storeType: String, _ url: URL?) throws -> URL {
    guard StoreClasses.shared.isRegistered(storeType) else {
      throw Self.invalidType(storeType)
    }
    if storeType == NSInMemoryStoreType { return url ?? URL(fileURLWithPath: "/dev/null") }
    if let url, url.isFileURL || StoreClasses.shared.customClass(of: storeType) != nil {
      return url
    }
    // A store of an app's own class may need no URL.
    if url == nil, storeType != NSSQLiteStoreType, storeType != NSBinaryStoreType {
      return URL(fileURLWithPath: "/dev/null")
    }
    throw CoreDataError.make(
      NSPersistentStoreOpenError,
      url.map { "A store's URL must be of a file: \($0.absoluteString)." }
        ?? "A URL is needed for a store of the type \(storeType)."
    )
  }

  /// Opens a store, or creates it, and adds it.
  @discardableResult
  public func addPersistentStore(
    type: NSPersistentStore.StoreType,
    configuration: String? = nil,
    at storeURL: URL,
    options: [AnyHashable: Any]? = nil
  ) throws -> NSPersistentStore {
    try addPersistentStore(
      ofType: type.rawValue,
      configurationName: configuration,
      at: storeURL,
      options: options
    )
  }

  /// Opens the store of a description, or creates it, and adds it.
  public func addPersistentStore(
    with storeDescription: NSPersistentStoreDescription,
    completionHandler block: @escaping (NSPersistentStoreDescription, (any Error)?) -> Void
  ) {
    guard storeDescription.shouldAddStoreAsynchronously else {
      block(storeDescription, add(storeDescription))
      return
    }
    // One closure, not a tuple: taking a tuple apart here stops the optimizer of Swift 6.3.
    let work = LaneTransfer({ block(storeDescription, self.add(storeDescription)) })
    // Beside the pool: a migration takes minutes, and the handler may wait for a task.
    effects.tasks.waiting("NSPersistentStoreCoordinator").spawn { work.value() }
  }

  private func add(_ description: NSPersistentStoreDescription) -> (any Error)? {
    do {
      try addPersistentStore(
        ofType: description.type,
        configurationName: description.configuration,
        at: description.url,
        options: description.options
      )
      return nil
    } catch {
      return error
    }
  }

  /// The store at a URL.
  public func persistentStore(for URL: URL) -> NSPersistentStore? {
    persistentStores.first {
      $0.url == URL || $0.url?.standardizedFileURL == URL.standardizedFileURL
    }
  }

  /// The URL of a store.
  public func url(for store: NSPersistentStore) -> URL {
    store.url ?? URL(fileURLWithPath: "/dev/null")
  }

  // MARK: Metadata

  /// The metadata of a store that is open.
  public func metadata(for store: NSPersistentStore) -> [String: Any] { store.metadata ?? [:] }

  /// Replaces the metadata of a store that is open.
  ///
  /// The type and the identifier are added where they are missing. An SQLite store writes them at
  /// once, an atomic one with its next save.
  public func setMetadata(_ metadata: [String: Any]?, for store: NSPersistentStore) {
    var metadata = metadata ?? [:]
    if metadata[NSStoreTypeKey] == nil { metadata[NSStoreTypeKey] = store.type }
    if metadata[NSStoreUUIDKey] == nil { metadata[NSStoreUUIDKey] = store.identifier }
    store.metadata = metadata
    binding(of: store)?.takeIdentifier()
  }

  /// The metadata of a store that need not be open.
  public class func metadataForPersistentStore(
    ofType storeType: String,
    at url: URL,
    options: [AnyHashable: Any]? = nil
  ) throws -> [String: Any] {
    try facade { try storeClass(of: storeType).metadataForPersistentStore(with: url) }
  }

  /// The metadata of a store that need not be open.
  public class func metadataForPersistentStore(
    type storeType: NSPersistentStore.StoreType,
    at storeURL: URL,
    options: [AnyHashable: Any]? = nil
  ) throws -> [String: Any] {
    try metadataForPersistentStore(ofType: storeType.rawValue, at: storeURL, options: options)
  }

  /// Replaces the metadata of a store that is not open.
  public class func setMetadata(
    _ metadata: [String: Any]?,
    forPersistentStoreOfType storeType: String,
    at url: URL,
    options: [AnyHashable: Any]? = nil
  ) throws {
    try facade { try storeClass(of: storeType).setMetadata(metadata, forPersistentStoreAt: url) }
  }

  /// Replaces the metadata of a store that is not open.
  public class func setMetadata(
    _ metadata: [String: Any]?,
    type storeType: NSPersistentStore.StoreType,
    at storeURL: URL,
    options: [AnyHashable: Any]? = nil
  ) throws {
    try setMetadata(
      metadata,
      forPersistentStoreOfType: storeType.rawValue,
      at: storeURL,
      options: options
    )
  }

  private class func storeClass(of storeType: String) throws -> NSPersistentStore.Type {
    if let storeClass = StoreClasses.shared.storeClass(of: storeType) { return storeClass }
    throw invalidType(storeType)
  }

  class func invalidType(_ storeType: String) -> NSError {
    CoreDataError.make(
      NSPersistentStoreInvalidTypeError,
      "Invalid persistent store type '\(storeType)'. These are registered: "
        + "\(StoreClasses.shared.types.joined(separator: ", "))."
    )
  }

  class func facade<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch {
      throw CoreDataError.facade(error)
    }
  }
}

extension NSPersistentStoreCoordinator {
  /// The token of the last transaction in the history of stores; nil stands for all stores.
  public func currentPersistentHistoryToken(
    fromStores stores: [Any]?
  ) -> NSPersistentHistoryToken? {
    let asked = (stores?.compactMap { $0 as? NSPersistentStore } ?? persistentStores)
      .compactMap { $0 as? SQLiteStore }
    var numbers: [String: Int64] = [:]
    for store in asked {
      // A store whose history can't be read adds no number to the token.
      guard let token = try? store.currentHistoryToken else { continue }
      numbers.merge(token.transactionNumbers) { _, last in last }
    }
    return numbers.isEmpty ? nil : NSPersistentHistoryToken(transactionNumbers: numbers)
  }
}
