import Foundation

extension NSManagedObject: KeyValueCoding {}

extension NSManagedObject: ObjectIdentified {
  package final var comparisonIdentifier: AnyHashable { AnyHashable(objectID) }
}

extension NSManagedObject {
  /// The value of a property by its name.
  ///
  /// Generic, so that a subclass can declare `subscript(name: String) -> Any?`: Apple's class has none.
  public final subscript(key: some StringProtocol) -> Any? {
    get { value(forKey: String(key)) }
    set { setValue(newValue, forKey: String(key)) }
  }

  /// The value at the end of a path of keys joined by dots; collection operators work too.
  public final func value(forKeyPath keyPath: String) -> Any? {
    let keys = keyPath.split(separator: ".").map(String.init)
    if keys.count == 1 { return value(forKey: keyPath) }
    let value = KeyPathValue.value(of: self, forKeyPath: keyPath)
    guard !keys.contains(where: { $0.hasPrefix("@") }), let values = value as? [Any],
      let toMany = firstToMany(keys)
    else { return value }
    if toMany.isOrdered { return NSOrderedSet(array: values) }
    return NSSet(array: values.filter { !($0 is NSNull) })
  }

  /// A path's values come in the kind of set that its first to-many relationship is.
  private final func firstToMany(_ keys: [String]) -> NSRelationshipDescription? {
    var entity: NSEntityDescription? = entity
    for key in keys {
      guard let relationship = entity?.relationshipsByName[key] else { return nil }
      if relationship.isToMany { return relationship }
      entity = relationship.destinationEntity
    }
    return nil
  }

  /// Sets the value at the end of a path of keys joined by dots.
  public final func setValue(_ value: Any?, forKeyPath keyPath: String) {
    var keys = keyPath.split(separator: ".").map(String.init)
    guard let last = keys.popLast() else { return }
    if let composite = keys.last, setLeaf(value, "\(composite).\(last)", keys.dropLast()) {
      return
    }
    guard let target = keys.isEmpty ? self : KeyPathWalk.value(of: self, keys) else { return }
    // A to-many on the way: every member gets the value.
    let members = ExpressionValue.members(of: target)
    KeyPathValue.setValue(value, of: members ?? [target], forKey: last)
  }

  /// Sets a part of a composite attribute; false where the keys do not lead to one.
  private final func setLeaf(_ value: Any?, _ leaf: String, _ keys: ArraySlice<String>) -> Bool {
    let target = keys.isEmpty ? self : KeyPathWalk.value(of: self, Array(keys))
    if let object = target as? NSManagedObject {
      guard case .attribute(let index) = object.template.layout.slot(named: leaf) else {
        return false
      }
      object.setAttributeValue(value, at: index)
      return true
    }
    // A group within a group.
    guard let outer = keys.last else { return false }
    return setLeaf(value, "\(outer).\(leaf)", keys.dropLast())
  }

  /// Checks the value at the end of a key path, which may be replaced by a valid one.
  public final func validateValue(
    _ value: AutoreleasingUnsafeMutablePointer<AnyObject?>,
    forKeyPath keyPath: String
  ) throws {
    guard let (object, key) = owner(ofKeyPath: keyPath) else { return }
    try object.validateValue(value, forKey: key)
  }

  /// The object at the end of a key path but for its last key.
  private final func owner(ofKeyPath keyPath: String) -> (NSManagedObject, String)? {
    var keys = keyPath.split(separator: ".").map(String.init)
    guard let last = keys.popLast() else { return nil }
    let target = keys.isEmpty ? self : KeyPathWalk.value(of: self, keys)
    return (target as? NSManagedObject).map { ($0, last) }
  }

  /// The values of several properties by name; nil values are `NSNull`.
  public final func dictionaryWithValues(forKeys keys: [String]) -> [String: Any] {
    Dictionary(
      keys.map { ($0, value(forKey: $0) ?? NSNull()) },
      uniquingKeysWith: { first, _ in first }
    )
  }

  /// Sets several properties by name; `NSNull` stands for nil.
  public final func setValuesForKeys(_ keyedValues: [String: Any]) {
    for key in keyedValues.keys.sorted() {
      let value = keyedValues[key]
      setValue(value is NSNull ? nil : value, forKey: key)
    }
  }

  /// A set that stands for a to-many relationship: changing it changes the relationship.
  ///
  /// **Differs from Core Data:** `as? Set<…>` of the result, and of an `@NSManaged` property of `NSMutableSet`,
  /// is an empty set, because Foundation on Linux converts no subclass of `NSMutableSet`. Iterate over it, or use
  /// `value(forKey:)` or its `allObjects`.
  public final func mutableSetValue(forKey key: String) -> NSMutableSet {
    guard case .toMany(let index) = template.layout.slot(named: key) else {
      fatalError(
        "NSManagedObjects of entity '\(template.layout.entityName)' do not support "
          + "-mutableSetValueForKey: for the property '\(key)'"
      )
    }
    return RelationshipSet(object: self, index: index)
  }

  /// The set that stands for the to-many relationship at the end of a key path.
  public final func mutableSetValue(forKeyPath keyPath: String) -> NSMutableSet {
    guard let (object, key) = owner(ofKeyPath: keyPath) else {
      fatalError("The key path '\(keyPath)' leads to no managed object.")
    }
    return object.mutableSetValue(forKey: key)
  }

  /// The ordered set that stands for the ordered relationship at the end of a key path.
  public final func mutableOrderedSetValue(forKeyPath keyPath: String) -> NSMutableOrderedSet {
    guard let (object, key) = owner(ofKeyPath: keyPath) else {
      fatalError("The key path '\(keyPath)' leads to no managed object.")
    }
    return object.mutableOrderedSetValue(forKey: key)
  }

  /// An ordered set that stands for an ordered relationship: changing it changes the relationship.
  public final func mutableOrderedSetValue(forKey key: String) -> NSMutableOrderedSet {
    guard case .toMany(let index) = template.layout.slot(named: key) else {
      fatalError(
        "NSManagedObjects of entity '\(template.layout.entityName)' do not support "
          + "-mutableOrderedSetValueForKey: for the property '\(key)'"
      )
    }
    guard template.toManys[index].slot.isOrdered else {
      fatalError(
        "NSManagedObjects of entity "
          + "'\(template.layout.entityName)' do not support -mutableOrderedSetValueForKey: for the "
          + "property '\(key)'"
      )
    }
    return orderedSet(at: index)
  }

  private final func orderedSet(at index: Int) -> RelationshipOrderedSet {
    loadedToMany(at: index).proxy ?? RelationshipOrderedSet(object: self, index: index)
  }

  /// The set or ordered set that stands for a to-many relationship.
  final func mutableCollection(at index: Int) -> NSObject {
    template.toManys[index].slot.isOrdered
      ? orderedSet(at: index) : RelationshipSet(object: self, index: index)
  }

  // MARK: Values

  /// The value of a name that is of no property of the model, where the object has one.
  final func ownValue(forKey key: String) -> Any?? {
    switch key {
    case "self": return self
    case "objectID": return objectID
    case "entity": return entity
    case "managedObjectContext": return .some(managedObjectContext)
    case "isInserted", "inserted": return NSNumber(value: isInserted)
    case "isUpdated", "updated": return NSNumber(value: isUpdated)
    case "isDeleted", "deleted": return NSNumber(value: isDeleted)
    case "isFault", "fault": return NSNumber(value: isFault)
    case "hasChanges": return NSNumber(value: hasChanges)
    case "hasPersistentChangedValues": return NSNumber(value: hasPersistentChangedValues)
    case "faultingState": return NSNumber(value: faultingState)
    case "changedValues": return changedValues()
    case "description": return description
    default:
      if let property = namedMembers.properties[key] { return .some(property.get(self)) }
      return storedValue(forKey: key)
    }
  }

  /// Sets a property of the class that is not of the model; false where none has the name.
  final func setNamedValue(_ value: Any?, forKey key: String) -> Bool {
    guard let set = namedMembers.properties[key]?.set else { return false }
    switch set(self, value) {
    case .done: return true
    case .nilForScalar:
      setNilValueForKey(key)
      return true
    case .unacceptable:
      fatalError(
        "Unacceptable type of value for the property \"\(key)\" of "
          + "\(String(reflecting: type(of: self))): \(String(describing: value))"
      )
    }
  }

  /// Sets a property of the model by the class's own accessor, which gets what the model's own would keep:
  /// numbers of the attribute's type.
  ///
  /// A value that the accessor's type does not have, such as an unknown raw value of an enumeration, goes to the
  /// model's property.
  final func setOwnValue(
    _ value: Any?,
    forKey key: String,
    by set: (NSManagedObject, Any?) -> ManagedNamedMembers.Setting
  ) {
    var kept = value
    if let value, case .attribute(let index) = template.layout.slot(named: key) {
      let type = template.attributeTypes[index]
      if let row = AttributeConversion.rowValue(value, as: type) {
        kept = AttributeConversion.boxed(row, as: type)
      }
    }
    switch set(self, kept) {
    case .done: return
    case .nilForScalar: setNilValueForKey(key)
    case .unacceptable: _ = setModeledValue(value, forKey: key)
    }
  }

  /// The value of a stored property that has no mark: reflection lists these only.
  private final func storedValue(forKey key: String) -> Any?? {
    var mirror: Mirror? = Mirror(reflecting: self)
    while let current = mirror, current.subjectType != NSManagedObject.self {
      for child in current.children where child.label == key {
        return .some(flattened(child.value))
      }
      mirror = current.superclassMirror
    }
    return nil
  }

  /// The value in its slot; the name must be of a property.
  final func modeledValue(forKey key: String) -> Any?? {
    switch template.layout.slot(named: key) {
    case .attribute(let index): return .some(attributeValue(at: index))
    case .toOne(let index): return .some(publicToOne(at: index))
    case .toMany(let index): return .some(collection(at: index))
    case .fetched(let index): return .some(fetchedValue(at: index))
    case nil: return compositeValue(forKey: key)
    }
  }

  final func collection(at index: Int) -> Any {
    guard isNullified(template.toManys[index]) else { return loadedToMany(at: index).collection }
    return template.toManys[index].slot.isOrdered ? NSOrderedSet() : NSSet()
  }

  /// Fetched values are kept with the objects behind attributes, whose places are not negative.
  private static func fetchedPlace(_ index: Int) -> Int { -1 - index }

  final func fetchedValue(at index: Int) -> Any? {
    // Like a relationship, a fetched property keeps its value until the object is a fault again.
    let place = Self.fetchedPlace(index)
    if let known = objectValues?[place] { return known }
    guard let context, let request = template.layout.fetched[index].fetchRequest else {
      return nil
    }
    if let predicate = request.predicate {
      request.predicate = predicate.withSubstitutionVariables([
        "FETCH_SOURCE": self, "FETCHED_PROPERTY": self.template.layout.fetched[index],
      ])
    }
    do {
      let found = try context.fetch(request)
      var boxes = objectValues ?? [:]
      boxes[place] = found
      objectValues = boxes
      return found
    } catch {
      context.couldNotRead("fulfill a fetched property of '\(objectID)'", error)
      return [NSManagedObject]()
    }
  }

  /// Sets a property without notifying the context; false when there is no property of that name.
  final func storePrimitive(_ value: Any?, forKey key: String) -> Bool {
    guard isReadyForChange() else { return template.layout.slot(named: key) != nil }
    switch template.layout.slot(named: key) {
    case .attribute(let index):
      storeAttributeValue(value, at: index)
      changed.insert(index)
    case .toOne(let index):
      storePrimitiveToOne(destination(value, key), at: index)
    case .toMany(let index):
      storePrimitiveMembers(destinations(value, key), at: index)
    case .fetched:
      return false
    case nil:
      return storePrimitiveComposite(value, forKey: key)
    }
    return true
  }

  /// Sets a property in its slot; false when the name is of none.
  final func setModeledValue(_ value: Any?, forKey key: String) -> Bool {
    switch template.layout.slot(named: key) {
    case .attribute(let index):
      setAttributeValue(value, at: index)
    case .toOne(let index):
      setToOne(destination(value, key), at: index)
    case .toMany(let index):
      setToMany(destinations(value, key), at: index)
    case .fetched:
      fatalError("The fetched property '\(key)' of \(template.layout.entityName) is read-only.")
    case nil:
      return setCompositeValue(value, forKey: key)
    }
    return true
  }

  final func destination(_ value: Any?, _ key: String) -> NSManagedObject? {
    guard let value, !(value is NSNull) else { return nil }
    guard let object = value as? NSManagedObject else {
      refuse(value, key, isToMany: false)
    }
    return object
  }

  final func destinations(_ value: Any?, _ key: String) -> [NSManagedObject] {
    switch value {
    case nil, is NSNull: return []
    // A cast to Set reads the storage of NSSet, which a subclass need not use.
    case let set as RelationshipSet: return set.allObjects.compactMap { $0 as? NSManagedObject }
    case let set as Set<NSManagedObject>: return Array(set)
    case let set as NSOrderedSet: return set.array.compactMap { $0 as? NSManagedObject }
    case let set as NSSet: return set.allObjects.compactMap { $0 as? NSManagedObject }
    case let array as [NSManagedObject]: return array
    case let value?: refuse(value, key, isToMany: true)
    }
  }

  private final func refuse(_ value: Any, _ key: String, isToMany: Bool) -> Never {
    let wanted = isToMany ? "NSSet" : "NSManagedObject"
    fatalError(
      "Unacceptable type of value for to-\(isToMany ? "many" : "one") relationship: property = "
        + "\"\(key)\"; desired type = \(wanted); given type = "
        + "\(AttributeConversion.className(of: value)); value = \(value)."
    )
  }
}
