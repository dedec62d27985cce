import Foundation

extension NSFetchRequest {
  /// Creates a request from a model file's template.
  convenience init(template: FetchRequestTemplate) {
    self.init(entityName: template.entityName)
    // A malformed predicate is reported when the model file is read; here it matches nothing.
    predicate = template.predicateFormat.map {
      (try? parsePredicate($0)) ?? NSPredicate(value: false)
    }
    resultType = NSFetchRequestResultType(rawValue: template.resultType)
    fetchLimit = template.fetchLimit
    fetchBatchSize = template.fetchBatchSize
    includesSubentities = template.includesSubentities
    includesPropertyValues = template.includesPropertyValues
    includesPendingChanges = template.includesPendingChanges
    returnsObjectsAsFaults = template.returnsObjectsAsFaults
    returnsDistinctResults = template.returnsDistinctResults
  }

  /// The request as a model file's template.
  var template: FetchRequestTemplate? {
    guard let entityName else { return nil }
    var template = FetchRequestTemplate(
      entityName: entityName,
      predicateFormat: predicate?.formatString
    )
    template.resultType = resultType.rawValue
    template.fetchLimit = fetchLimit
    template.fetchBatchSize = fetchBatchSize
    template.includesSubentities = includesSubentities
    template.includesPropertyValues = includesPropertyValues
    template.includesPendingChanges = includesPendingChanges
    template.returnsObjectsAsFaults = returnsObjectsAsFaults
    template.returnsDistinctResults = returnsDistinctResults
    return template
  }
}

extension NSManagedObjectModel {
  /// The fetch requests of the model by name.
  public var fetchRequestTemplatesByName: [String: NSFetchRequest<any NSFetchRequestResult>] {
    requestTemplates.mapValues { NSFetchRequest(template: $0) }
      .merging(requests.mapValues { NSFetchRequest(sameAs: $0) }) { _, set in set }
  }

  /// The fetch request of a name, with its variables.
  ///
  /// **Differs from Core Data:** the request is a copy, so changing it leaves the model as it is.
  public func fetchRequestTemplate(
    forName name: String
  ) -> NSFetchRequest<any NSFetchRequestResult>? {
    if let request = requests[name] { return NSFetchRequest(sameAs: request) }
    return requestTemplates[name].map { NSFetchRequest(template: $0) }
  }

  /// The fetch request of a name with its variables replaced by values.
  public func fetchRequestFromTemplate(
    withName name: String,
    substitutionVariables variables: [String: Any]
  ) -> NSFetchRequest<any NSFetchRequestResult>? {
    guard let request = fetchRequestTemplate(forName: name) else { return nil }
    request.predicate = request.predicate?.withSubstitutionVariables(variables)
    return request
  }

  /// Sets the fetch request of a name; nil removes it.
  public func setFetchRequestTemplate(
    _ fetchRequestTemplate: NSFetchRequest<any NSFetchRequestResult>?,
    forName name: String
  ) {
    if isFrozen { fatalError("Can't modify an immutable model.") }
    requestTemplates[name] = fetchRequestTemplate?.template
    requests[name] = fetchRequestTemplate.map(NSFetchRequest.init(sameAs:))
  }

  /// Sets the fetch request of a name.
  ///
  /// **Differs from Core Data:** one overload more, as a typed request does not convert on Linux.
  public func setFetchRequestTemplate<ResultType>(
    _ fetchRequestTemplate: NSFetchRequest<ResultType>,
    forName name: String
  ) {
    let erased: NSFetchRequest<any NSFetchRequestResult> = NSFetchRequest(
      sameAs: fetchRequestTemplate
    )
    setFetchRequestTemplate(.some(erased), forName: name)
  }
}

extension NSEntityDescription {
  /// The entity of a name in a context's model.
  public class func entity(
    forEntityName entityName: String,
    in context: NSManagedObjectContext
  ) -> NSEntityDescription? {
    guard let model = context.model else {
      fatalError(
        "+entityForName: nil is not a legal NSPersistentStoreCoordinator for searching for entity "
          + "name '\(entityName)'"
      )
    }
    return model.entitiesByName[entityName]
  }

  /// Creates an object of an entity and inserts it into a context.
  public class func insertNewObject(
    forEntityName entityName: String,
    into context: NSManagedObjectContext
  ) -> NSManagedObject {
    guard let entity = entity(forEntityName: entityName, in: context) else {
      fatalError(
        "+entityForName: could not locate an entity named '\(entityName)' in this model."
      )
    }
    return ObjectTemplate.of(entity).type.make(entity: entity, in: context)
  }
}

extension NSManagedObject {
  /// Creates an object of the class with the initializer that every subclass has.
  static func make(
    entity: NSEntityDescription,
    in context: NSManagedObjectContext,
    awakes: Bool = true
  ) -> NSManagedObject {
    let object = self.init(_row: .temporary(ObjectTemplate.of(entity)))
    object.becomeNew()
    context.insert(object, awakes: awakes)
    return object
  }

  /// An object without a context, which notifies no observer.
  static func scratch(_ entity: NSEntityDescription) -> NSManagedObject {
    let template = ObjectTemplate.of(entity)
    let object = template.type.init(_row: .temporary(template))
    object.becomeNew()
    return object
  }

  private final func becomeNew() {
    state = []
    values = template.defaults
    for (index, value) in template.objectDefaults { setObjectValue(value, at: index) }
  }
}
