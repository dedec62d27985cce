import Foundation

/// A typed accessor for a to-many relationship, to add and remove single members.
///
/// ```swift
/// extension Chapter {
///   private static let tagsMembers = ManagedToMany<Tag>("tags")
///   func addToTags(_ tag: Tag) { self[Self.tagsMembers].add(tag) }
/// }
/// ```
public struct ManagedToMany<Element: NSManagedObject>: Sendable {
  /// The name of the relationship in the model.
  public let key: String
  let named: ManagedProperty<Set<Element>>

  /// Names a relationship.
  public init(_ key: String) {
    self.key = key
    named = ManagedProperty(key)
  }
}

extension NSManagedObject {
  /// The members of a to-many relationship, to be read and changed one by one.
  public final subscript<Element>(
    _ relationship: ManagedToMany<Element>
  ) -> ManagedMembers<Element> {
    guard
      case .toMany(let index) = slot(named: relationship.named.key, relationship.named.cache).kind
    else {
      fatalError(
        "\(template.layout.entityName) has no to-many relationship named '\(relationship.key)'."
      )
    }
    return ManagedMembers(object: self, index: index)
  }
}

/// The members of one object's to-many relationship.
///
/// Every change keeps the inverse relationship true. Adding to an unordered relationship, and
/// removing from it, does not load the members that are there.
public struct ManagedMembers<Element: NSManagedObject> {
  let object: NSManagedObject
  let index: Int

  private var objects: [NSManagedObject] { object.publicMembers(at: index) }

  /// The members as a set, kept until they change.
  public var set: Set<Element> { object.typedMembers(at: index, of: Element.self) }

  /// The members in the relationship's order, if it has one.
  public var array: [Element] { objects.compactMap { $0 as? Element } }

  /// Adds a member, at the end where there is an order.
  public func add(_ value: Element) {
    object.addToMany(value, at: index)
  }

  /// Adds members.
  public func add(_ values: NSSet) {
    for value in values { add(member: value) }
  }

  /// Adds members at the end, in their order.
  public func add(_ values: NSOrderedSet) {
    for value in values.array { add(member: value) }
  }

  /// Adds members.
  public func add(_ values: Set<Element>) {
    for value in values { object.addToMany(value, at: index) }
  }

  /// Removes a member.
  public func remove(_ value: Element) {
    object.removeFromMany(value, at: index)
  }

  /// Removes members.
  public func remove(_ values: NSSet) {
    for case let value as NSManagedObject in values.allObjects {
      object.removeFromMany(value, at: index)
    }
  }

  /// Removes members.
  public func remove(_ values: NSOrderedSet) {
    for case let value as NSManagedObject in values.array {
      object.removeFromMany(value, at: index)
    }
  }

  /// Removes members.
  public func remove(_ values: Set<Element>) {
    for value in values { object.removeFromMany(value, at: index) }
  }

  // MARK: With an order

  /// Inserts a member at an index; an object that is a member already keeps its index.
  public func insert(_ value: Element, at place: Int) {
    object.addToMany(value, at: index, position: place)
  }

  /// Inserts members, each at its own index; the indexes are in ascending order.
  public func insert(_ values: [Element], at places: NSIndexSet) {
    for (value, place) in zip(values, places) { insert(value, at: place) }
  }

  /// Removes the member at an index.
  public func remove(at place: Int) {
    object.removeFromMany(objects[place], at: index)
  }

  /// Removes the members at indexes.
  public func remove(at places: NSIndexSet) {
    let members = objects
    for place in places { object.removeFromMany(members[place], at: index) }
  }

  /// Replaces the member at an index.
  public func replace(at place: Int, with value: Element) {
    remove(at: place)
    insert(value, at: place)
  }

  /// Replaces the members at indexes.
  public func replace(at places: NSIndexSet, with values: [Element]) {
    remove(at: places)
    insert(values, at: places)
  }

  private func add(member: Any) {
    guard let member = member as? NSManagedObject else {
      fatalError("Unacceptable type of value for to-many relationship: value = \(member).")
    }
    object.addToMany(member, at: index)
  }
}
