import Effects
import Foundation

/// A store that answers requests one by one: a web service, or a database of an app's own.
///
/// A subclass overrides `loadMetadata()`, `execute(_:with:)`, `newValuesForObject(with:with:)`,
/// `newValue(forRelationship:forObjectWith:with:)` and `obtainPermanentIDs(for:)`. The calls come
/// one at a time, on the thread of the context that asks. An error that the store throws reaches the
/// caller unchanged.
///
/// **Differs from Core Data:** a fetch request comes as `NSFetchRequest<any NSFetchRequestResult>`
/// whatever the caller's was, because a cast between instantiations of a class fails without
/// Objective-C. Values are kept by the objects that have them and not by the coordinator, so
/// each context asks for its own.
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

  /// Sets the metadata, the store's type and identifier at least, and makes the store ready.
  open override func loadMetadata() throws {
    guard metadata.isEmpty else { return }
    metadata = [
      NSStoreTypeKey: registeredType,
      NSStoreUUIDKey: "\(Self.identifierForNewStore(at: url ?? URL(fileURLWithPath: "/dev/null")))",
    ]
  }

  /// Answers a fetch or a save.
  ///
  /// A fetch of objects returns an array of objects, made by the context's `object(with:)`; one of
  /// identifiers, dictionaries or the count an array of those. A save returns an empty array.
  open func execute(
    _ request: NSPersistentStoreRequest,
    with context: NSManagedObjectContext?
  ) throws -> Any {
    preconditionFailure(
      "execute(_:with:): must be overridden by the class of an incremental store."
    )
  }

  /// The values of one object, when its fault fires.
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

  /// Lasting identifiers for objects that are about to be saved, in the order of the objects.
  open func obtainPermanentIDs(for array: [NSManagedObject]) throws -> [NSManagedObjectID] {
    preconditionFailure(
      "obtainPermanentIDs(for:): must be overridden by the class of an incremental store."
    )
  }

  /// The identifier of a store that is to be created: a text that no other store has.
  open class func identifierForNewStore(at storeURL: URL) -> Any { Effects.live.uuid().uuidString }

  /// A context now uses the objects of these identifiers.
  open func managedObjectContextDidRegisterObjects(with objectIDs: [NSManagedObjectID]) {}

  /// A context no longer uses the objects of these identifiers.
  open func managedObjectContextDidUnregisterObjects(with objectIDs: [NSManagedObjectID]) {}

  // MARK: For subclasses to call

  /// The identifier of the object that the store knows by a text or a number.
  open func newObjectID(
    for entity: NSEntityDescription,
    referenceObject data: Any
  ) -> NSManagedObjectID {
    objectID(entity, data)
  }

  /// What the store knows an object by.
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
