import Foundation
import Synchronization

/// The name of a class of managed objects, by which its entity finds it: "Shop.Order".
///
/// The class may be nested or private to its file. Foundation's function of this name, which is called
/// for other classes, stops the program there.
public func NSStringFromClass(_ aClass: NSManagedObject.Type) -> String {
  ManagedClassNames.name(of: aClass)
}

/// Classes by the names that entities use.
enum ManagedClassNames {
  /// What was looked up in the type records, and how many images there were.
  private struct Lookup {
    let imageCount: Int
    let type: NSManagedObject.Type?
  }

  /// The classes that were named and that Foundation does not find by name.
  private static let named = Mutex<[String: NSManagedObject.Type]>([:])

  /// What was found by own names: one entry for each class name of the models in use.
  private static let lookups = Mutex<[String: Lookup]>([:])

  static func name(of type: NSManagedObject.Type) -> String {
    if type == NSManagedObject.self { return "NSManagedObject" }
    // A private class has "(unknown context at $7f…)" between its module and its name.
    let name = String(reflecting: type).replacing(/\(unknown context at \$\w+\)\./, with: "")
    let found = foundation(name)
    if found == type { return name }
    return named.withLock { named in
      // Classes that are private to two files may have one name.
      var unique = name
      var number = 1
      while let other = named[unique] ?? (number == 1 ? found : nil), other != type {
        number += 1
        unique = "\(name)-\(number)"
      }
      named[unique] = type
      return unique
    }
  }

  /// The class of a name.
  static func type(named name: String) -> NSManagedObject.Type? {
    named.withLock { $0[name] } ?? foundation(name)
  }

  /// The only class with an own name, in any module.
  static func type(ownName name: String) -> NSManagedObject.Type? {
    let imageCount = TypeRecords.imageCount
    if let known = lookups.withLock({ $0[name] }), known.imageCount == imageCount {
      return known.type
    }
    let type = TypeRecords.onlyClass(named: name, of: NSManagedObject.self)
    lookups.withLock { $0[name] = Lookup(imageCount: imageCount, type: type) }
    return type
  }

  /// The class that Foundation finds, which logs the name of a nested class.
  private static func foundation(_ name: String) -> NSManagedObject.Type? {
    guard name.count(where: { $0 == "." }) <= 1 else { return nil }
    return NSClassFromString(name) as? NSManagedObject.Type
  }
}
