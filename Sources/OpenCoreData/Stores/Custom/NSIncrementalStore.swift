import Effects
import Foundation

/// A store that executes requests one by one, such as a web service or an app's own database.
///
/// ```swift
/// final class GreetingStore: NSIncrementalStore, @unchecked Sendable {
///   private let greetings = ["Good morning", "Good night"]
///
///   override func execute(
///     _ request: NSPersistentStoreRequest,
///     with context: NSManagedObjectContext?
///   ) throws -> Any {
///     guard let fetch = request as? NSFetchRequest<any NSFetchRequestResult>,
///       let note = fetch.entity, let context
///     else { throw CocoaError(.featureUnsupported) }
///     return greetings.indices.map { index in
///       context.object(with: newObjectID(for: note, referenceObject: index))
///     }
///   }
///
///   override func newValuesForObject(
///     with objectID: NSManagedObjectID,
///     with context: NSManagedObjectContext
///   ) throws -> NSIncrementalStoreNode {
///     let index = referenceObject(for: objectID) as? Int ?? 0
///     let values = ["text": greetings[index]]
///     return NSIncrementalStoreNode(objectID: objectID, withValues: values, version: 1)
///   }
/// }
/// ```
///
/// A subclass overrides `loadMetadata()`, `execute(_:with:)`, `newValuesForObject(with:with:)`,
/// `newValue(forRelationship:forObjectWith:with:)` and `obtainPermanentIDs(for:)`. The calls are
/// serialized, on the thread of the requesting context. An error that the store throws is passed to
/// the caller unchanged.
///
/// **Differs from Core Data:** every fetch request is passed as
/// `NSFetchRequest<any NSFetchRequestResult>`, because a cast between instantiations of a class fails
/// without Objective-C. Values are cached by the objects and not by the coordinator, so each context
/// requests its own. A subclass with a designated initializer of its own overrides
/// `init(persistentStoreCoordinator:configurationName:at:options:)` too: only then it inherits what the
/// coordinator calls.
open class NSIncrementalStore: NSPersistentStore, CustomStore, @unchecked Sendable {
  // Sendable: the binding is set before the store is shared.

  var binding: StoreBinding?

  /// Creates a store.
  public override init(
    persistentStoreCoordinator root: NSPersistentStoreCoordinator?,
    configurationName name: String?,
    at url: URL,
    options: [AnyHashable: Any]? = nil
  ) {
    super.init(
      persistentStoreCoordinator: root,
      configurationName: name,
      at: url,
      options: options
    )
  }

  /// Creates a store for a coordinator; it calls the initializer that subclasses override.
  public required convenience init(_opening opening: NSPersistentStoreOpening) {
    self.init(
      persistentStoreCoordinator: opening.coordinator,
      configurationName: opening.configurationName,
      at: opening.url,
      options: opening.options
    )
  }

  // MARK: For subclasses to override

  /// Sets the metadata, with at least the store's type and identifier, and prepares the store.
  open override func loadMetadata() throws {
    guard metadata.isEmpty else { return }
    metadata = [
      NSStoreTypeKey: registeredType,
      NSStoreUUIDKey: "\(Self.identifierForNewStore(at: url ?? URL(fileURLWithPath: "/dev/null")))",
    ]
  }

  /// Executes a fetch or a save.
  ///
  /// A fetch of objects returns an array of objects, created with the context's `object(with:)`; a
  /// fetch of identifiers, dictionaries or the count returns an array of those. A save returns an
  /// empty array.
  open func execute(
    _ request: NSPersistentStoreRequest,
    with context: NSManagedObjectContext?
  ) throws -> Any {
    preconditionFailure(
      "execute(_:with:): must be overridden by the class of an incremental store."
    )
  }

  /// The values of one object, whose fault fires.
  open func newValuesForObject(
    with objectID: NSManagedObjectID,
    with context: NSManagedObjectContext
  ) throws -> NSIncrementalStoreNode {
    preconditionFailure(
      "newValuesForObject(with:with:): must be overridden by the class of an incremental store."
    )
  }

  /// The destinations of a relationship: an identifier or `NSNull`, or an array of identifiers.
  open func newValue(
    forRelationship relationship: NSRelationshipDescription,
    forObjectWith objectID: NSManagedObjectID,
    with context: NSManagedObjectContext?
  ) throws -> Any {
    preconditionFailure(
      "newValue(forRelationship:forObjectWith:with:): must be overridden by the class of an "
        + "incremental store."
    )
  }

  /// Permanent identifiers for objects that are about to be saved, in the order of the objects.
  open func obtainPermanentIDs(for array: [NSManagedObject]) throws -> [NSManagedObjectID] {
    preconditionFailure(
      "obtainPermanentIDs(for:): must be overridden by the class of an incremental store."
    )
  }

  /// The identifier of a new store, which must be unique.
  open class func identifierForNewStore(at storeURL: URL) -> Any { Effects.live.uuid().uuidString }

  /// Called when a context has registered objects with these identifiers.
  open func managedObjectContextDidRegisterObjects(with objectIDs: [NSManagedObjectID]) {}

  /// Called when a context has unregistered the objects with these identifiers.
  open func managedObjectContextDidUnregisterObjects(with objectIDs: [NSManagedObjectID]) {}

  // MARK: For subclasses to call

  /// The identifier of the object with a reference object.
  open func newObjectID(
    for entity: NSEntityDescription,
    referenceObject data: Any
  ) -> NSManagedObjectID {
    objectID(entity, data)
  }

  /// The reference object of an identifier.
  open func referenceObject(for objectID: NSManagedObjectID) -> Any {
    reference(behind: objectID)
  }

  open override var type: String { metadata[NSStoreTypeKey] as? String ?? registeredType }

  // MARK: CustomStore

  func makeRows(_ entities: CustomStoreEntities) -> any RowStore {
    IncrementalRows(
      connection: IncrementalConnection(store: self, entities: entities),
      context: nil
    )
  }

  func loadContents() throws {}
}
