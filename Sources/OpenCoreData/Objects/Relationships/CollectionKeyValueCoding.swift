import Foundation

// Foundation on Linux has no key-value coding. These are the methods that collections of managed
// objects have on Apple's platforms, with the same results.

extension NSArray {
  /// The values of every member for a key, `NSNull` where a member has none.
  public func value(forKey key: String) -> Any {
    if key.hasPrefix("@") { return value(forKeyPath: key) ?? NSNull() }
    return NSArray(array: KeyPathValue.values(of: map { $0 }, forKey: key))
  }

  /// The values at the end of a key path, which may have collection operators.
  public func value(forKeyPath keyPath: String) -> Any? {
    boxed(KeyPathValue.value(of: map { $0 }, forKeyPath: keyPath))
  }

  /// Sets a key of every member.
  public func setValue(_ value: Any?, forKey key: String) {
    KeyPathValue.setValue(value, of: map { $0 }, forKey: key)
  }

  private func boxed(_ value: Any?) -> Any? {
    (value as? [Any]).map { NSArray(array: $0) } ?? value
  }
}

extension NSSet {
  /// The values of the members for a key; members without a value are left out.
  public func value(forKey key: String) -> Any {
    if key.hasPrefix("@") { return value(forKeyPath: key) ?? NSNull() }
    let values = KeyPathValue.values(of: allObjects, forKey: key)
    return NSSet(array: values.filter { !($0 is NSNull) })
  }

  /// The values at the end of a key path, which may have collection operators.
  public func value(forKeyPath keyPath: String) -> Any? {
    let value = KeyPathValue.value(of: allObjects, forKeyPath: keyPath)
    guard let values = value as? [Any] else { return value }
    if keyPath.contains("@") { return NSArray(array: values) }
    return NSSet(array: values.filter { !($0 is NSNull) })
  }

  /// Sets a key of every member.
  public func setValue(_ value: Any?, forKey key: String) {
    KeyPathValue.setValue(value, of: allObjects, forKey: key)
  }
}

extension NSOrderedSet {
  /// The values of the members for a key, in their order and without repetitions.
  public func value(forKey key: String) -> Any {
    if key.hasPrefix("@") { return value(forKeyPath: key) ?? NSNull() }
    return NSOrderedSet(array: KeyPathValue.values(of: array, forKey: key))
  }

  /// The values at the end of a key path, which may have collection operators.
  public func value(forKeyPath keyPath: String) -> Any? {
    let value = KeyPathValue.value(of: array, forKeyPath: keyPath)
    guard let values = value as? [Any] else { return value }
    return keyPath.contains("@") ? NSArray(array: values) : NSOrderedSet(array: values)
  }

  /// Sets a key of every member.
  public func setValue(_ value: Any?, forKey key: String) {
    KeyPathValue.setValue(value, of: array, forKey: key)
  }
}

extension Array where Element: NSManagedObject {
  /// The values of every member for a key, `NSNull` where a member has none.
  public func value(forKey key: String) -> Any { NSArray(array: self).value(forKey: key) }

  /// The values at the end of a key path, which may have collection operators.
  public func value(forKeyPath keyPath: String) -> Any? {
    NSArray(array: self).value(forKeyPath: keyPath)
  }

  /// Sets a key of every member.
  public func setValue(_ value: Any?, forKey key: String) {
    KeyPathValue.setValue(value, of: self, forKey: key)
  }
}

extension Set where Element: NSManagedObject {
  /// The values of the members for a key; members without a value are left out.
  public func value(forKey key: String) -> Any { NSSet(array: Array(self)).value(forKey: key) }

  /// The values at the end of a key path, which may have collection operators.
  public func value(forKeyPath keyPath: String) -> Any? {
    NSSet(array: Array(self)).value(forKeyPath: keyPath)
  }

  /// Sets a key of every member.
  public func setValue(_ value: Any?, forKey key: String) {
    KeyPathValue.setValue(value, of: Array(self), forKey: key)
  }
}
