import Foundation

/// Chooses the accessor of a property by the property's type: the fastest that fits.
///
/// Generated code and macros know only a type's spelling, so they let the compiler choose.
public enum ManagedAccessor {
  /// The accessor of a property whose type a row holds.
  public static func property<Value: ManagedValue>(
    _ key: String,
    of type: Value.Type
  ) -> ManagedProperty<Value> {
    ManagedProperty(key)
  }

  /// The accessor of an enumeration with raw values.
  public static func property<Value: RawRepresentable>(
    _ key: String,
    of type: Value.Type
  ) -> ManagedRawProperty<Value> where Value.RawValue: ManagedValue {
    ManagedRawProperty(key)
  }

  /// The accessor of a property of any other type.
  @_disfavoredOverload
  public static func property<Value>(
    _ key: String,
    of type: Value.Type
  ) -> ManagedObjectProperty<Value> {
    ManagedObjectProperty(key)
  }
}

/// A typed accessor for the primitive value of a property.
///
/// It is what `@NSManaged var primitiveTitle: String?` means for the property "title": no change is
/// announced and no inverse is kept.
public struct ManagedPrimitiveProperty<Value>: Sendable {
  /// The name of the property in the model.
  public let key: String

  /// Names a property.
  public init(_ key: String) {
    self.key = key
  }
}

extension NSManagedObject {
  /// Reads or writes a property's primitive value through its typed accessor.
  ///
  /// Stops the program where a value is not of the accessor's type.
  public final subscript<Value>(_ property: ManagedPrimitiveProperty<Value>) -> Value {
    get {
      let value = primitiveValue(forKey: property.key)
      guard let typed = value as? Value else {
        fatalError(
          "The primitive value of '\(property.key)' of \(entity.name ?? "") is "
            + "\(value.map { "\($0)" } ?? "nil"), which is no \(Value.self)."
        )
      }
      return typed
    }
    set { setPrimitiveValue(Self.unwrapped(newValue), forKey: property.key) }
  }
}

/// The former name of ``ManagedAccessor``, for classes that were generated before the rename.
@available(*, deprecated, renamed: "ManagedAccessor")
public typealias ManagedDoor = ManagedAccessor
