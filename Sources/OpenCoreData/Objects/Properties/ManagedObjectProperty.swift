import Foundation

/// A typed accessor for a property whose values are objects outside the row.
///
/// It reads what key-value coding gives and casts it: transformable and composite attributes,
/// numbers as `NSNumber`, collections as arrays. `ManagedProperty` is faster where its type fits.
///
/// ```swift
/// private static let wordsProperty = ManagedObjectProperty<[String]?>("words")
/// ```
public struct ManagedObjectProperty<Value>: Sendable {
  /// The name of the property in the model.
  public let key: String
  let named: ManagedProperty<Data?>

  /// Names a property.
  public init(_ key: String) {
    self.key = key
    named = ManagedProperty(key)
  }
}

/// A typed accessor for an attribute that holds the raw values of an enumeration.
///
/// ```swift
/// private static let stateProperty = ManagedRawProperty<State>("state")
/// ```
public struct ManagedRawProperty<Value: RawRepresentable>: Sendable
where Value.RawValue: ManagedValue {
  let raw: ManagedProperty<Value.RawValue>

  /// The name of the property in the model.
  public var key: String { raw.key }

  /// Names a property.
  public init(_ key: String) {
    raw = ManagedProperty(key)
  }
}

extension NSManagedObject {
  /// Reads or writes a property of any type through its typed accessor.
  ///
  /// Stops the program where a value is not of the property's type, and where there is none for a
  /// property whose type is not optional.
  public final subscript<Value>(_ property: ManagedObjectProperty<Value>) -> Value {
    get {
      let slot = slot(named: property.named.key, property.named.cache)
      let value = boxedValue(at: slot)
      guard let typed = value as? Value ?? Self.bridged(value) as? Value else {
        if case .toMany(let index) = slot.kind, Self.isMutableCollection(Value.self),
          let typed = mutableCollection(at: index) as? Value
        {
          return typed
        }
        if let destination = KeyPathNames.destination(of: property.key, in: template.layout),
          let typed = destination as? Value
        {
          return typed
        }
        fatalError(
          "The property '\(property.key)' of \(template.layout.entityName) is "
            + "\(value.map { "\($0)" } ?? "nil"), which is no \(Value.self)."
        )
      }
      return typed
    }
    set {
      setBoxedValue(
        Self.unwrapped(newValue),
        at: slot(named: property.named.key, property.named.cache),
        property.key
      )
    }
  }

  /// Reads or writes an enumeration through the typed accessor of its raw values.
  ///
  /// Stops the program where the raw value is of no case of the enumeration.
  public final subscript<Value>(_ property: ManagedRawProperty<Value>) -> Value {
    get {
      let raw = self[property.raw]
      guard let value = Value(rawValue: raw) else {
        fatalError(
          "The property '\(property.key)' of \(template.layout.entityName) is \(raw), which is no "
            + "\(Value.self)."
        )
      }
      return value
    }
    set { self[property.raw] = newValue.rawValue }
  }

  private final func boxedValue(at slot: ManagedSlot) -> Any? {
    switch slot.kind {
    case .attribute(let index): attributeValue(at: index)
    case .toOne(let index): publicToOne(at: index)
    case .toMany(let index): collection(at: index)
    case .fetched(let index): fetchedValue(at: index)
    }
  }

  private final func setBoxedValue(_ value: Any?, at slot: ManagedSlot, _ key: String) {
    switch slot.kind {
    case .attribute(let index): setAttributeValue(value, at: index)
    case .toOne(let index): setToOne(destination(value, key), at: index)
    case .toMany(let index): setToMany(destinations(value, key), at: index)
    case .fetched: _ = setModeledValue(value, forKey: key)
    }
  }

  /// Whether a property is declared as a mutable collection, whose changes are those of the relationship.
  ///
  /// Any other type has to be that of the value itself: Foundation casts a subclass of `NSMutableSet` to a `Set` of
  /// every type of objects, and to an empty one.
  private static func isMutableCollection<Value>(_ type: Value.Type) -> Bool {
    type == NSMutableSet.self || type == NSMutableSet?.self || type == NSMutableOrderedSet.self
      || type == NSMutableOrderedSet?.self
  }

  /// The value as an object, for a property that is declared as `NSDate` or `NSString`.
  private static func bridged(_ value: Any?) -> Any? {
    switch value {
    case let value as Date: value as NSDate
    case let value as String: value as NSString
    case let value as Data: value as NSData
    case let value as UUID: value as NSUUID
    case let value as URL: value as NSURL
    default: nil
    }
  }

  /// The value inside an optional that only its own type knows of.
  static func unwrapped<Value>(_ value: Value) -> Any? {
    guard let optional = value as? any OptionalValue else { return value }
    return optional.anyValue
  }
}

private protocol OptionalValue {
  var anyValue: Any? { get }
}

extension Optional: OptionalValue {
  fileprivate var anyValue: Any? { self }
}
