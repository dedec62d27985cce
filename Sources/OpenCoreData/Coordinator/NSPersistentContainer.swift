import Effects
import Foundation

/// A model, a coordinator, its stores and a context for the main thread.
///
/// ```swift
/// let container = NSPersistentContainer(name: "Blog")
/// container.loadPersistentStores { description, error in
///   if let error { fatalError("\(description): \(error)") }
/// }
/// let post = Post(context: container.viewContext)
/// post.title = "Hello"
/// try container.viewContext.save()
/// ```
open class NSPersistentContainer: NSObject, @unchecked Sendable {
  // Sendable: `lock` guards what is made at first use and what can be set.

  /// The name of the container, of its model and of its store's file.
  open var name: String { givenName }
  /// The model of the objects.
  open var managedObjectModel: NSManagedObjectModel { model }
  private let givenName: String
  private let model: NSManagedObjectModel
  private let lock = NSRecursiveLock()
  private var guardedEffects = Effects.live
  private var guardedDescriptions: [NSPersistentStoreDescription]
  private var guardedCoordinator: NSPersistentStoreCoordinator?
  private var guardedViewContext: NSManagedObjectContext?

  /// Creates a container with a model.
  public init(name: String, managedObjectModel model: NSManagedObjectModel) {
    givenName = name
    self.model = model
    guardedDescriptions = []
    super.init()
    let url = Self.defaultDirectoryURL().appendingPathComponent("\(name).sqlite")
    guardedDescriptions = [NSPersistentStoreDescription(url: url)]
  }

  /// Creates a container with the model of its name.
  ///
  /// The model file is searched for where SwiftPM, Xcode and hand-made apps put it; where there is
  /// none, the program stops with the list of the folders searched.
  public convenience init(name: String) {
    self.init(name: name, managedObjectModel: Self.model(named: name))
  }

  /// Creates a container with other effects than the system's.
  package convenience init(
    name: String,
    managedObjectModel model: NSManagedObjectModel,
    effects: Effects
  ) {
    self.init(name: name, managedObjectModel: model)
    self.effects = effects
  }

  private static func model(named name: String) -> NSManagedObjectModel {
    do {
      let url = try ModelLocator.locate(name: name)
      guard let model = NSManagedObjectModel(contentsOf: url) else {
        preconditionFailure("Failed to load model named \(name) from \(url.path).")
      }
      return model
    } catch {
      preconditionFailure("Failed to load model named \(name): \(error)")
    }
  }

  /// The effects that the container uses; they can be changed until the coordinator is used.
  package var effects: Effects {
    get { lock.withLock { guardedEffects } }
    set {
      lock.withLock {
        precondition(guardedCoordinator == nil, "The container's coordinator is in use already.")
        guardedEffects = newValue
      }
    }
  }

  /// The folder of stores that are created without a URL.
  ///
  /// On Linux it is a folder named after the program in `$XDG_DATA_HOME` or `~/.local/share`.
  open class func defaultDirectoryURL() -> URL {
    let environment = ProcessInfo.processInfo.environment
    let home: URL
    if let path = environment["XDG_DATA_HOME"], path.hasPrefix("/") {
      home = URL(fileURLWithPath: path, isDirectory: true)
    } else {
      home = FileManager.default.homeDirectoryForCurrentUser
        .appendingPathComponent(".local/share", isDirectory: true)
    }
    return home.appendingPathComponent(ProcessInfo.processInfo.processName, isDirectory: true)
  }

  /// The stores to open.
  open var persistentStoreDescriptions: [NSPersistentStoreDescription] {
    get { lock.withLock { guardedDescriptions } }
    set { lock.withLock { guardedDescriptions = newValue } }
  }

  /// The coordinator of the stores.
  open var persistentStoreCoordinator: NSPersistentStoreCoordinator {
    lock.withLock {
      if let guardedCoordinator { return guardedCoordinator }
      let made = NSPersistentStoreCoordinator(
        managedObjectModel: managedObjectModel,
        effects: guardedEffects
      )
      made.name = name
      guardedCoordinator = made
      return made
    }
  }

  /// The context for the main thread.
  open var viewContext: NSManagedObjectContext {
    lock.withLock {
      if let guardedViewContext { return guardedViewContext }
      let made = NSManagedObjectContext(concurrencyType: .mainQueueConcurrencyType)
      made.persistentStoreCoordinator = persistentStoreCoordinator
      made.name = "viewContext"
      guardedViewContext = made
      return made
    }
  }

  /// Opens the stores, or creates them; the block is called once for each.
  open func loadPersistentStores(
    completionHandler block: @escaping (NSPersistentStoreDescription, (any Error)?) -> Void
  ) {
    for description in persistentStoreDescriptions {
      if let error = prepareFolder(of: description) {
        block(description, error)
        continue
      }
      persistentStoreCoordinator.addPersistentStore(with: description, completionHandler: block)
    }
  }

  /// The folder of a store in a file must be there.
  private func prepareFolder(of description: NSPersistentStoreDescription) -> (any Error)? {
    guard description.type == NSSQLiteStoreType, !description.isReadOnly,
      let url = description.url, url.isFileURL, !StorePlace.isInMemory(url)
    else { return nil }
    do {
      try FileSystem.makeFolder(url.deletingLastPathComponent().path)
      return nil
    } catch {
      return error
    }
  }

  /// A new context with a queue of its own.
  open func newBackgroundContext() -> NSManagedObjectContext {
    let context = NSManagedObjectContext(concurrencyType: .privateQueueConcurrencyType)
    context.persistentStoreCoordinator = persistentStoreCoordinator
    return context
  }

  /// Runs a block with a new context on its queue and returns at once.
  open func performBackgroundTask(_ block: @escaping (NSManagedObjectContext) -> Void) {
    let context = newBackgroundContext()
    context.perform { block(context) }
  }

  /// Runs a block with a new context on its queue and suspends until it is done.
  nonisolated(nonsending) public func performBackgroundTask<T, Failure: Error>(
    _ block: @escaping (NSManagedObjectContext) throws(Failure) -> T
  ) async throws(Failure) -> T {
    let context = newBackgroundContext()
    return try await context.perform { () throws(Failure) -> T in try block(context) }
  }
}

/// Gives containers a class property beside the class method of the same name.
public protocol DefaultDirectoryNaming: NSPersistentContainer {}

extension NSPersistentContainer: DefaultDirectoryNaming {}

extension DefaultDirectoryNaming {
  /// Where stores are created when no other place is given; a subclass overrides the method.
  public static var defaultDirectoryURL: URL { defaultDirectoryURL() }
}
