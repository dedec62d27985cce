import Foundation

/// The place of the tables that the build plugin writes.
enum GeneratedTables {
  /// The modules of a class and of those that it inherits from, nearest first.
  static func modules(of type: NSManagedObject.Type) -> [String] {
    var modules: [String] = []
    var current: AnyClass? = type
    while let type = current, type != NSManagedObject.self {
      // The reflected name begins with the module, also that of a class inside another type.
      let module = String(String(reflecting: type).prefix { $0 != "." })
      if !modules.contains(module) { modules.append(module) }
      current = _getSuperclass(type)
    }
    return modules
  }
}

/// Values that are collected for each class at its first lookup.
final class ClassTable<Value>: @unchecked Sendable {
  // Sendable: read and written under the lock; the values are of constant tables.
  private let lock = NSLock()
  private var values: [ObjectIdentifier: Value] = [:]

  /// The value of a class; `collect` runs without the lock, and twice if two threads ask at once.
  func value(for type: NSManagedObject.Type, _ collect: () -> Value) -> Value {
    let key = ObjectIdentifier(type)
    if let known = lock.withLock({ values[key] }) { return known }
    let value = collect()
    lock.withLock { values[key] = value }
    return value
  }
}
