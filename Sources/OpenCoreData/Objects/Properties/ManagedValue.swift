import Foundation

/// A property's place in an object, found once for each entity; opaque to apps.
public struct ManagedSlot: Sendable {
  let kind: PropertySlot
}

/// A type that a managed property can have.
///
/// Numbers, `Bool`, `Decimal`, `String`, `Date`, `Data`, `UUID`, `URL`, their optionals, an
/// optional managed object for a to-one, and `Set`, `NSSet?` or `NSOrderedSet?` for a to-many
/// conform.
public protocol ManagedValue {
  /// Reads the property.
  static func managedValue(of object: NSManagedObject, at slot: ManagedSlot) -> Self
  /// Writes the property and keeps inverse relationships true.
  static func setManagedValue(_ value: Self, of object: NSManagedObject, at slot: ManagedSlot)
}

/// A type of which a managed property can also have no value.
public protocol ManagedOptionalValue {
  /// Reads the property; nil where it has no value.
  static func optionalManagedValue(of object: NSManagedObject, at slot: ManagedSlot) -> Self?
  /// Writes the property and keeps inverse relationships true.
  static func writeManagedValue(_ value: Self, of object: NSManagedObject, at slot: ManagedSlot)
}

/// A value that fits into a row by itself.
protocol RowScalar: ManagedValue, ManagedOptionalValue {
  init?(row: RowValue)
  var row: RowValue { get }
  /// The value that a property without a value is read as, if its type is not optional.
  static var none: Self { get }
}

extension Optional: ManagedValue where Wrapped: ManagedOptionalValue {
  /// Reads the property; nil where it has no value.
  @inlinable
  public static func managedValue(of object: NSManagedObject, at slot: ManagedSlot) -> Wrapped? {
    Wrapped.optionalManagedValue(of: object, at: slot)
  }

  /// Writes the property; nil takes its value away.
  @inlinable
  public static func setManagedValue(
    _ value: Wrapped?,
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) {
    if let value {
      Wrapped.writeManagedValue(value, of: object, at: slot)
    } else {
      object.clearValue(at: slot)
    }
  }
}

extension NSManagedObject {
  @usableFromInline
  final func clearValue(at slot: ManagedSlot) {
    switch slot.kind {
    case .attribute(let index):
      if template.layout.attributes[index].holdsObjects {
        setAttributeValue(nil, at: index)
      } else {
        setRowValue(.null, at: index)
      }
    case .toOne(let index): setToOne(nil, at: index)
    case .toMany(let index): setToMany([], at: index)
    case .fetched: break
    }
  }
}

// MARK: To-one

extension NSManagedObject: ManagedOptionalValue {
  /// Reads a to-one relationship.
  public static func optionalManagedValue(
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) -> Self? {
    guard case .toOne(let index) = slot.kind else { return nil }
    return object.publicToOne(at: index) as? Self
  }

  /// Writes a to-one relationship.
  public static func writeManagedValue(
    _ value: NSManagedObject,
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) {
    guard case .toOne(let index) = slot.kind else { return }
    object.setToOne(value, at: index)
  }
}

// MARK: To-many

extension Set: ManagedValue where Element: NSManagedObject {
  /// Reads a to-many relationship.
  @inlinable
  public static func managedValue(
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) -> Set<Element> {
    let (members, memberClass) = object.memberSet(at: slot)
    if memberClass == ObjectIdentifier(Element.self) {
      // A set of objects has the same layout for every class of its elements.
      return unsafeBitCast(members, to: Set<Element>.self)
    }
    return object.typedMembers(at: slot, of: Element.self)
  }

  /// Writes a to-many relationship.
  public static func setManagedValue(
    _ value: Set<Element>,
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) {
    guard case .toMany(let index) = slot.kind else { return }
    // A set has the same layout for every class of its elements; a cast would convert each element.
    object.setToMany(Array(unsafeBitCast(value, to: Set<NSManagedObject>.self)), at: index)
  }
}

extension Set: ManagedOptionalValue where Element: NSManagedObject {
  /// Reads a to-many relationship, which always has a value.
  public static func optionalManagedValue(
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) -> Set<Element>? {
    managedValue(of: object, at: slot)
  }

  /// Writes a to-many relationship.
  public static func writeManagedValue(
    _ value: Set<Element>,
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) {
    setManagedValue(value, of: object, at: slot)
  }
}

extension NSSet: ManagedOptionalValue {
  /// Reads a to-many relationship; a change of an `NSMutableSet` is one of the relationship.
  public static func optionalManagedValue(
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) -> Self? {
    guard case .toMany(let index) = slot.kind else { return nil }
    return object.collection(at: index) as? Self ?? object.mutableCollection(at: index) as? Self
  }

  /// Writes a to-many relationship.
  public static func writeManagedValue(
    _ value: NSSet,
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) {
    guard case .toMany(let index) = slot.kind else { return }
    object.setToMany(value.allObjects.compactMap { $0 as? NSManagedObject }, at: index)
  }
}

extension NSOrderedSet: ManagedOptionalValue {
  /// Reads an ordered to-many relationship; a change of an `NSMutableOrderedSet` is one of the relationship.
  public static func optionalManagedValue(
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) -> Self? {
    guard case .toMany(let index) = slot.kind else { return nil }
    return object.collection(at: index) as? Self ?? object.mutableCollection(at: index) as? Self
  }

  /// Writes an ordered to-many relationship.
  public static func writeManagedValue(
    _ value: NSOrderedSet,
    of object: NSManagedObject,
    at slot: ManagedSlot
  ) {
    guard case .toMany(let index) = slot.kind else { return }
    object.setToMany(value.array.compactMap { $0 as? NSManagedObject }, at: index)
  }
}
