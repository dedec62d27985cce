import Foundation

/// Maps the key paths of a module's classes to property names.
///
/// A Swift key path has no name at run time. The build plugin therefore generates one class named
/// `ManagedKeyPathNames` that conforms to this protocol in each module with managed objects, and it
/// is looked up by that name. Classes written with macros provide their names themselves, in
/// `NSManagedObject.keyPathNames`.
///
/// - Note: **Differs from Core Data:** Core Data asks Objective-C for the name.
public protocol ManagedKeyPathNaming: AnyObject {
  /// The names of a class's properties by key paths that begin at the class itself.
  ///
  /// The result includes the properties that the class inherits from the module's classes, even
  /// where the class itself is of another module.
  static func keyPathNames(of type: NSManagedObject.Type) -> [AnyKeyPath: String]
}

extension KeyPathNames {
  /// The key path as text, such as "author.name"; nil when it refers to no modeled property.
  ///
  /// The names that were generated with the class are searched first, because they need no model;
  /// then the entity of the class in the models that are in use.
  package static func name(of keyPath: AnyKeyPath) -> String? {
    guard let root = type(of: keyPath).rootType as? NSManagedObject.Type else { return nil }
    if let name = generatedName(of: keyPath) { return name }
    guard let layout = ManagedObjectModels.entity(of: root)?.layout else {
      return stateName(of: keyPath) ?? generatedPath(of: keyPath)?.joined(separator: ".")
    }
    return name(of: keyPath, from: layout)
  }

  /// The name that was generated with the class; nil for other key paths, and for those that cross
  /// a relationship.
  static func generatedName(of keyPath: AnyKeyPath) -> String? {
    guard let root = type(of: keyPath).rootType as? NSManagedObject.Type else { return nil }
    return GeneratedKeyPathNames.names(of: root)[keyPath]
  }

  /// The generated names along a key path that crosses relationships which are not optional, such as
  /// `\Post.author.name`; nil for others.
  ///
  /// It needs no model, but compares with every path of such relationships, up to a depth.
  static func generatedPath(of keyPath: AnyKeyPath) -> [String]? {
    guard type(of: keyPath).rootType is NSManagedObject.Type else { return nil }
    var crossed = GeneratedKeyPathNames.steps(from: type(of: keyPath).rootType).map { step in
      (path: step.key, names: [step.value])
    }
    for _ in 1..<generatedDepth {
      var next: [(path: AnyKeyPath, names: [String])] = []
      for (prefix, names) in crossed {
        for (step, name) in GeneratedKeyPathNames.steps(from: type(of: prefix).valueType) {
          guard let path = prefix.appending(path: step) else { continue }
          if path == keyPath { return names + [name] }
          next.append((path, names + [name]))
        }
      }
      crossed = next
    }
    return nil
  }

  /// The most properties of a key path that is found without a model.
  private static let generatedDepth = 3
}

/// The generated names of each class, collected at the first lookup.
private enum GeneratedKeyPathNames {
  private static let known = ClassTable<[AnyKeyPath: String]>()

  /// The names of a type's properties; none where it is no managed object's.
  static func steps(from type: Any.Type) -> [AnyKeyPath: String] {
    (type as? NSManagedObject.Type).map(names) ?? [:]
  }

  static func names(of type: NSManagedObject.Type) -> [AnyKeyPath: String] {
    known.value(for: type) {
      var names = type.keyPathNames
      for module in GeneratedTables.modules(of: type) {
        guard
          let naming = NSClassFromString("\(module).ManagedKeyPathNames")
            as? any ManagedKeyPathNaming.Type
        else { continue }
        names.merge(naming.keyPathNames(of: type)) { first, _ in first }
      }
      return names
    }
  }
}
