import Foundation

/// The members of a managed object's class that Core Data finds by their names.
///
/// Objective-C finds them among a class's methods. Swift on this platform has no such table, so the
/// build plugin writes one: for every property of a managed object's class that is marked `@objc`,
/// every override of an `@NSManaged` one, every rule `validate<Key>(_:)` and every
/// `keyPathsForValuesAffecting<Key>()`. The mark may stand in `#if canImport(ObjectiveC)`, as
/// `watershed adopt` writes it.
///
/// A property of the model has priority over none of them: key-value coding calls the class's own
/// accessor, which reads and sets the primitive value.
///
/// ```swift
/// extension Author {
///   #if canImport(ObjectiveC)
///   @objc
///   #endif
///   var initial: String { String((name ?? "?").prefix(1)) }
/// }
/// ```
///
/// A member of the main actor is found too; as in Objective-C, the caller is on the main actor when it
/// reads one by its name.
///
/// - Note: **Differs from Core Data:** Core Data asks Objective-C. Private members are not found, nor
///   those of another global actor and of classes in a target without the plugin.
public struct ManagedNamedMembers {
  /// A rule for the values of one property, which may replace the value.
  public typealias Rule = (NSManagedObject, AutoreleasingUnsafeMutablePointer<AnyObject?>) throws ->
    Void

  /// The outcome of setting a property by its name.
  enum Setting {
    case done
    /// The value is nil, and the property is a number.
    case nilForScalar
    /// The value is of another type than the property.
    case unacceptable
  }

  /// A property that key-value coding finds by its name.
  struct Property {
    var get: (NSManagedObject) -> Any?
    /// Nil if the property cannot be set.
    var set: ((NSManagedObject, Any?) -> Setting)?
  }

  private(set) var properties: [String: Property] = [:]
  private(set) var rules: [String: Rule] = [:]
  private(set) var dependencies: [String: () -> Set<String>] = [:]

  /// Adds a property under its name.
  public mutating func add<Root: NSManagedObject, Value>(
    _ name: String,
    _ path: KeyPath<Root, Value>
  ) {
    var property = Property(get: { object in
      NamedValue.boxed(unsafeDowncast(object, to: Root.self)[keyPath: path])
    })
    if let path = path as? ReferenceWritableKeyPath<Root, Value> {
      property.set = { object, value in
        guard let value = NamedValue.unboxed(value, as: Value.self) else {
          return value == nil && NamedValue.isNumber(Value.self) ? .nilForScalar : .unacceptable
        }
        unsafeDowncast(object, to: Root.self)[keyPath: path] = value
        return .done
      }
    }
    properties[name] = property
  }

  /// Adds a rule under what follows `validate` in its name.
  public mutating func addRule(_ name: String, _ rule: @escaping Rule) {
    rules[name] = rule
  }

  /// Adds dependencies under what follows `keyPathsForValuesAffecting` in the name.
  public mutating func addDependencies(_ name: String, _ paths: @escaping () -> Set<String>) {
    dependencies[name] = paths
  }

  /// Adds the members of a class by a function of the main actor, on any thread.
  ///
  /// A module's members may be isolated to the main actor, and only code of that actor can form their
  /// key paths and the closures that call them. Forming them runs no code of a member.
  public mutating func add(
    membersOf type: NSManagedObject.Type,
    by body: @escaping @MainActor (NSManagedObject.Type, inout ManagedNamedMembers) -> Void
  ) {
    typealias Unisolated = (NSManagedObject.Type, inout ManagedNamedMembers) -> Void
    unsafeBitCast(body, to: Unisolated.self)(type, &self)
  }

  /// The rule of a property, if the class has one.
  func rule(forKey key: String) -> Rule? { rules.isEmpty ? nil : rules[Self.capitalized(key)] }

  /// The key paths that a property's value is computed from.
  func dependencies(ofKey key: String) -> Set<String> {
    dependencies[Self.capitalized(key)]?() ?? []
  }

  /// "Title" for the key "title", as in the names of methods.
  private static func capitalized(_ key: String) -> String {
    key.prefix(1).uppercased() + key.dropFirst()
  }
}

/// Finds the named members of a module's classes.
///
/// The build plugin writes one class named `ManagedMemberNames` that conforms to this protocol into
/// each module whose managed objects have such members, and it is looked up by that name.
public protocol ManagedMemberNaming: AnyObject {
  /// Adds what a class has, with what it inherits from the module's classes.
  static func add(membersOf type: NSManagedObject.Type, to members: inout ManagedNamedMembers)
}

extension ManagedNamedMembers {
  private static let known = ClassTable<ManagedNamedMembers>()

  /// The named members of a class.
  static func of(_ type: NSManagedObject.Type) -> ManagedNamedMembers {
    known.value(for: type) {
      var members = ManagedNamedMembers()
      // A class's own members replace those that it inherits from another module.
      for module in GeneratedTables.modules(of: type).reversed() {
        let table =
          NSClassFromString("\(module).ManagedMemberNames") as? any ManagedMemberNaming.Type
        table?.add(membersOf: type, to: &members)
      }
      return members
    }
  }
}

extension NSManagedObject {
  /// The members of the object's class that are found by their names.
  final var namedMembers: ManagedNamedMembers {
    type(of: self) == template.type ? template.namedMembers : .of(type(of: self))
  }

  /// The class's own accessor of a property of the model; nil for most classes.
  final func ownAccessor(forKey key: String) -> ManagedNamedMembers.Property? {
    templateReference._withUnsafeGuaranteedRef { template in
      if type(of: self) == template.type {
        return template.accessors.isEmpty ? nil : template.accessors[key]
      }
      return ManagedNamedMembers.of(type(of: self)).accessors(of: template.layout)[key]
    }
  }
}

extension ManagedNamedMembers {
  /// The named properties that are also properties of the model.
  func accessors(of layout: EntityLayout) -> [String: Property] {
    properties.filter { name, _ in
      layout.slot(named: name) != nil || layout.composite(named: name) != nil
    }
  }
}

extension ObjectTemplate {
  /// Whether objects of a class have the values of their rows for key-value coding.
  func readsRows(_ type: NSManagedObject.Type) -> Bool {
    ManagedNamedMembers.of(type).accessors(of: layout).isEmpty
      && !MethodOverride.valueForKey.isPresent(in: type)
  }
}
