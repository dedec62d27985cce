import OpenCoreData

/// The input of class generation: an entity, reduced to what code needs.
package struct EntityDeclaration: Sendable, Hashable {
  /// Which parts of the class are generated, the most first.
  package enum Generation: String, CaseIterable, Sendable, Hashable {
    /// The class and its properties are generated.
    case `class`
    /// The properties are generated; the class is written by hand.
    case category
    /// Nothing is generated.
    case none
  }

  package var name: String
  package var className: String
  /// The superclass.
  package var superclassName: String
  package var generation: Generation
  /// The properties that the entity itself declares, sorted by name.
  package var properties: [PropertyDeclaration]
}

/// A property of generated code.
package struct PropertyDeclaration: Sendable, Hashable {
  package enum Kind: Sendable, Hashable {
    case attribute
    /// A scalar date: seconds since the reference date.
    case interval
    case toOne
    case toMany(element: String, isOrdered: Bool)
    case fetched
  }

  package var name: String
  package var kind: Kind
  /// The Swift type, as Xcode writes it.
  package var type: String
  /// The accessor type: "ManagedProperty" or "ManagedObjectProperty".
  package var accessorType: String
}

extension EntityDeclaration {
  /// The entities of a module's models that have their own classes, one for each class.
  ///
  /// Models of one module often name the same class, and not all of them generate it: the first one
  /// that generates the class, or else its properties, defines it.
  package static func declarations(in models: [NSManagedObjectModel]) -> [EntityDeclaration] {
    let all = models.flatMap(declarations)
    var found: [String: EntityDeclaration] = [:]
    for generation in Generation.allCases {
      for entity in all where entity.generation == generation && found[entity.className] == nil {
        found[entity.className] = entity
      }
    }
    var seen: Set<String> = []
    return all.compactMap { seen.insert($0.className).inserted ? found[$0.className] : nil }
  }

  /// The entities of a model that have their own classes.
  package static func declarations(in model: NSManagedObjectModel) -> [EntityDeclaration] {
    var seen: Set<String> = []
    return model.entities.sorted { ($0.name ?? "") < ($1.name ?? "") }.compactMap { entity in
      guard let className = className(of: entity) else { return nil }
      let declaration = EntityDeclaration(entity, className)
      // If entities share a class, the entity of that name, or else the first one, defines its
      // properties.
      return seen.insert(className).inserted ? declaration : nil
    }
  }

  private init(_ entity: NSEntityDescription, _ className: String) {
    name = entity.name ?? ""
    self.className = className
    generation = entity.codeGenerationType.flatMap(Generation.init(rawValue:)) ?? .none
    // A superentity without its own class passes its properties on to its subentities.
    var inherited: [NSPropertyDescription] = []
    var ancestor = entity.superentity
    while let parent = ancestor, Self.className(of: parent) == nil {
      inherited += parent.ownProperties
      ancestor = parent.superentity
    }
    superclassName = ancestor.flatMap(Self.className) ?? "NSManagedObject"
    properties = (entity.ownProperties + inherited)
      .sorted { $0.name < $1.name }.compactMap { PropertyDeclaration($0) }
  }

  /// The class name without a module; nil if the objects are plain managed objects.
  static func className(of entity: NSEntityDescription) -> String? {
    let name = entity.objectClassName.split(separator: ".").last.map(String.init) ?? ""
    return name.isEmpty || name == "NSManagedObject" ? nil : name
  }
}

extension PropertyDeclaration {
  fileprivate init?(_ property: NSPropertyDescription) {
    name = property.name
    guard !name.isEmpty else { return nil }
    switch property {
    case let attribute as NSAttributeDescription:
      let form = Self.form(of: attribute)
      (kind, type, accessorType) = (form.kind, form.type, form.accessorType)
    case let relationship as NSRelationshipDescription:
      let destination =
        relationship.destinationEntity.flatMap(EntityDeclaration.className) ?? "NSManagedObject"
      if relationship.isToMany {
        kind = .toMany(element: destination, isOrdered: relationship.isOrdered)
        type = relationship.isOrdered ? "NSOrderedSet?" : "NSSet?"
      } else {
        kind = .toOne
        type = destination + "?"
      }
      accessorType = "ManagedProperty"
    case let fetched as NSFetchedPropertyDescription:
      kind = .fetched
      type = "[\(Self.destination(of: fetched))]?"
      accessorType = "ManagedObjectProperty"
    default:
      return nil
    }
  }

  private static func destination(of property: NSFetchedPropertyDescription) -> String {
    let model = property.declaringEntity?.modelReference
    return property.requestTemplate.flatMap { model?.entitiesByName[$0.entityName] }
      .flatMap(EntityDeclaration.className) ?? "NSManagedObject"
  }

  /// As in Xcode, every object type is optional, regardless of the model, and no scalar type is.
  private static func form(
    of attribute: NSAttributeDescription
  ) -> (kind: Kind, type: String, accessorType: String) {
    let isScalar = attribute.usesScalarValueType
    func number(_ scalar: String) -> (kind: Kind, type: String, accessorType: String) {
      isScalar
        ? (.attribute, scalar, "ManagedProperty")
        : (.attribute, "NSNumber?", "ManagedObjectProperty")
    }
    switch attribute.attributeType {
    case .integer16AttributeType: return number("Int16")
    case .integer32AttributeType: return number("Int32")
    case .integer64AttributeType: return number("Int64")
    case .doubleAttributeType: return number("Double")
    case .floatAttributeType: return number("Float")
    case .booleanAttributeType: return number("Bool")
    case .decimalAttributeType:
      return (.attribute, "NSDecimalNumber?", "ManagedObjectProperty")
    case .stringAttributeType: return (.attribute, "String?", "ManagedProperty")
    case .dateAttributeType:
      return isScalar
        ? (.interval, "TimeInterval", "ManagedProperty") : (.attribute, "Date?", "ManagedProperty")
    case .binaryDataAttributeType: return (.attribute, "Data?", "ManagedProperty")
    case .UUIDAttributeType: return (.attribute, "UUID?", "ManagedProperty")
    case .URIAttributeType: return (.attribute, "URL?", "ManagedProperty")
    case .compositeAttributeType:
      return (.attribute, "[String: Any]?", "ManagedObjectProperty")
    case .objectIDAttributeType:
      return (.attribute, "NSManagedObjectID?", "ManagedObjectProperty")
    case .transformableAttributeType, .undefinedAttributeType:
      // The editor writes a class of the global namespace with a dot: ".NSArray".
      let type = (attribute.explicitValueClassName ?? "NSObject").drop { $0 == "." }
      return (.attribute, "\(type)?", "ManagedObjectProperty")
    }
  }
}
