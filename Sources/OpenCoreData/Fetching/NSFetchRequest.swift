import Foundation

/// A description of a search for objects.
///
/// ```swift
/// let request = NSFetchRequest<Post>(entityName: "Post")
/// request.predicate = NSPredicate(format: "title BEGINSWITH %@", "Swift")
/// request.sortDescriptors = [NSSortDescriptor(key: "created", ascending: false)]
/// request.fetchLimit = 20
/// request.relationshipKeyPathsForPrefetching = ["author"]
/// let posts = try context.fetch(request)
/// ```
///
/// Differs from Core Data: the result type has no bound here, because an existential such as
/// `any NSFetchRequestResult` cannot satisfy one without Objective-C. A function that uses its own
/// parameter where a bound is needed names it: `func all<T: NSFetchRequestResult>`.
open class NSFetchRequest<ResultType>: NSPersistentStoreRequest {
  private var entityDescription: NSEntityDescription?
  private var name: String?
  private var managedObjectClass: NSManagedObject.Type?

  /// The stores that are searched; nil searches all.
  open override var affectedStores: [NSPersistentStore]? {
    get { super.affectedStores }
    set { super.affectedStores = newValue }
  }
  /// The condition for matches.
  open var predicate: NSPredicate?
  /// The order of the matches.
  open var sortDescriptors: [NSSortDescriptor]?
  /// The most results; 0 for all.
  open var fetchLimit = 0
  /// The number of matches to skip.
  open var fetchOffset = 0
  /// The number of objects that are loaded at a time; 0 loads all at once.
  ///
  /// With a batch size the fetch reads the identifiers only, and its objects are faults. Reading
  /// the first of them loads the rows of its whole batch in one query.
  ///
  /// **Differs from Core Data:** the array holds all its objects, as a Swift array has no other
  /// way. To walk more objects than should be in memory at once, see
  /// ``NSManagedObjectContext/objects(matching:batchSize:)``.
  open var fetchBatchSize = 0
  /// The kind of the results.
  open var resultType: NSFetchRequestResultType = .managedObjectResultType
  /// Whether objects of subentities match too.
  open var includesSubentities = true
  /// Whether values are loaded along with the objects.
  open var includesPropertyValues = true
  /// Whether objects are returned as faults, whose values are loaded at the first access.
  open var returnsObjectsAsFaults = true
  /// The relationships that are loaded along with the objects.
  open var relationshipKeyPathsForPrefetching: [String]?
  /// Whether unsaved changes are included.
  open var includesPendingChanges = true
  /// Whether equal dictionaries are returned once.
  open var returnsDistinctResults = false
  /// The properties of each dictionary: descriptions or names.
  ///
  /// **Differs from Core Data:** where objects are asked for, their rows are read whole; the
  /// properties are checked and otherwise without effect.
  open var propertiesToFetch: [Any]?
  /// Whether registered objects are updated with the store's values.
  open var shouldRefreshRefetchedObjects = false
  /// The properties by which dictionaries are grouped: descriptions or names.
  open var propertiesToGroupBy: [Any]?
  /// The condition for groups.
  open var havingPredicate: NSPredicate?

  /// Creates a request without an entity.
  public override init() {
    super.init()
  }

  /// Creates a request for the objects of an entity.
  public convenience init(entityName: String) {
    self.init()
    name = entityName
  }

  convenience init(managedObjectClass: NSManagedObject.Type) {
    self.init()
    self.managedObjectClass = managedObjectClass
  }

  /// The entity of the objects.
  open var entity: NSEntityDescription? {
    get { entityDescription ?? managedObjectClass.flatMap { ManagedObjectModels.entity(of: $0) } }
    set {
      entityDescription = newValue
      name = nil
      managedObjectClass = nil
    }
  }

  /// The name of the entity.
  open var entityName: String? { name ?? entity?.name }

  open override var requestType: NSPersistentStoreRequestType { .fetchRequestType }

  /// Runs the request in the context whose queue the calling code runs on.
  ///
  /// It stops the process outside of a block of a context's `perform`, as with Apple.
  open func execute() throws -> [ResultType] {
    guard let context = NSManagedObjectContext.current else {
      InvalidArgument.stop(
        "-[NSFetchRequest execute] must be called in a block of a context's perform"
      )
    }
    return try context.results(of: self).compactMap { $0 as? ResultType }
  }

  /// Copies the request.
  open override func copy(with zone: NSZone? = nil) -> Any {
    NSFetchRequest<ResultType>(sameAs: self)
  }

  /// Creates a request with the settings of another one, and another type of results.
  ///
  /// It stands in for a cast between `NSFetchRequest` types, which succeeds with Objective-C alone:
  ///
  /// ```swift
  /// let anyRequest = NSFetchRequest<any NSFetchRequestResult>(sameAs: NSFetchRequest<Post>())
  /// ```
  ///
  /// Results that are not of the type are left out.
  public convenience init<OtherType>(sameAs other: NSFetchRequest<OtherType>) {
    self.init()
    entityDescription = other.entityDescription
    name = other.name
    managedObjectClass = other.managedObjectClass
    affectedStores = other.affectedStores
    predicate = other.predicate
    sortDescriptors = other.sortDescriptors
    fetchLimit = other.fetchLimit
    fetchOffset = other.fetchOffset
    fetchBatchSize = other.fetchBatchSize
    resultType = other.resultType
    includesSubentities = other.includesSubentities
    includesPropertyValues = other.includesPropertyValues
    returnsObjectsAsFaults = other.returnsObjectsAsFaults
    relationshipKeyPathsForPrefetching = other.relationshipKeyPathsForPrefetching
    includesPendingChanges = other.includesPendingChanges
    returnsDistinctResults = other.returnsDistinctResults
    propertiesToFetch = other.propertiesToFetch
    shouldRefreshRefetchedObjects = other.shouldRefreshRefetchedObjects
    propertiesToGroupBy = other.propertiesToGroupBy
    havingPredicate = other.havingPredicate
  }

  /// Whether the other request has the same settings and the same type of results.
  open override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? NSFetchRequest<ResultType> else { return false }
    return other === self || hasSettings(of: other)
  }

  /// Equal for equal requests; it changes with their settings.
  open override var hash: Int {
    var hasher = Hasher()
    hasher.combine(entityName)
    hasher.combine(fetchLimit)
    hasher.combine(fetchOffset)
    return hasher.finalize()
  }

  /// The entity in a model: looked up by description, by name or by class.
  func entity(in model: NSManagedObjectModel) throws -> NSEntityDescription {
    if let entityDescription {
      // The request's entity may be from another copy of the model.
      return model.entitiesByName[entityDescription.name ?? ""] ?? entityDescription
    }
    if let managedObjectClass, let template = ObjectTemplate.of(managedObjectClass, in: model) {
      return template.layout.entity
    }
    if let name, let entity = model.entitiesByName[name] { return entity }
    guard let wanted = name ?? managedObjectClass.map({ String(reflecting: $0) }) else {
      throw InvalidArgument("executeFetchRequest:error: A fetch request must have an entity.")
    }
    throw InvalidArgument(
      "executeFetchRequest:error: could not locate an entity named '\(wanted)' in this model."
    )
  }
}

extension NSFetchRequest {
  fileprivate func hasSettings(of other: NSFetchRequest<ResultType>) -> Bool {
    guard hasSource(of: other), hasResults(of: other) else { return false }
    guard predicate == other.predicate, havingPredicate == other.havingPredicate else {
      return false
    }
    return Self.isSame(sortDescriptors, other.sortDescriptors) { $0.sorts(as: $1) }
  }

  /// Whether the results have the same form, window and properties.
  private func hasResults(of other: NSFetchRequest<ResultType>) -> Bool {
    guard fetchLimit == other.fetchLimit, fetchOffset == other.fetchOffset,
      fetchBatchSize == other.fetchBatchSize, resultType == other.resultType,
      includesPropertyValues == other.includesPropertyValues,
      returnsObjectsAsFaults == other.returnsObjectsAsFaults,
      relationshipKeyPathsForPrefetching == other.relationshipKeyPathsForPrefetching,
      includesPendingChanges == other.includesPendingChanges,
      returnsDistinctResults == other.returnsDistinctResults,
      shouldRefreshRefetchedObjects == other.shouldRefreshRefetchedObjects
    else { return false }
    return Self.isSame(propertiesToFetch, other.propertiesToFetch, Self.isSameProperty)
      && Self.isSame(propertiesToGroupBy, other.propertiesToGroupBy, Self.isSameProperty)
  }

  /// Whether the same stores are searched for objects of the same entities.
  private func hasSource(of other: NSFetchRequest<ResultType>) -> Bool {
    guard entityName == other.entityName, includesSubentities == other.includesSubentities,
      Self.isSame(affectedStores, other.affectedStores, ===)
    else { return false }
    // A request that has the entity's name alone may be for an entity of any model.
    guard let entity, let otherEntity = other.entity else { return true }
    return entity === otherEntity || entity == otherEntity
  }

  private static func isSame<Element>(
    _ left: [Element]?,
    _ right: [Element]?,
    _ isSame: (Element, Element) -> Bool
  ) -> Bool {
    guard let left, let right else { return left == nil && right == nil }
    return left.elementsEqual(right, by: isSame)
  }

  /// Compares names, or descriptions of properties.
  private static func isSameProperty(_ left: Any, _ right: Any) -> Bool {
    if let left = left as? String, let right = right as? String { return left == right }
    guard let left = left as? NSObject, let right = right as? NSObject else { return false }
    return left == right
  }
}

extension NSFetchRequestResult where Self: NSManagedObject {
  /// A fetch request for the class's entity, with its results typed.
  public static func fetchRequest() -> NSFetchRequest<Self> {
    NSFetchRequest<Self>(managedObjectClass: Self.self)
  }
}
