import Foundation

/// An atomic store's values of one object, by property name.
///
/// The value of a to-one relationship is another node, that of a to-many a set of nodes, or an
/// ordered set if it is ordered. A subclass may create values on demand by overriding
/// `value(forKey:)`.
open class NSAtomicStoreCacheNode: NSObject, @unchecked Sendable {
  // Sendable: a store's nodes are used only under its lock.

  /// The identifier of the object.
  public let objectID: NSManagedObjectID
  private var properties: NSMutableDictionary?

  /// Creates a node without values.
  public init(objectID moid: NSManagedObjectID) {
    objectID = moid
    super.init()
  }

  /// The values by property name; nil until the first one is set.
  open var propertyCache: NSMutableDictionary? {
    get { properties }
    set { properties = newValue }
  }

  /// The value of a property; nil if it has none.
  open func value(forKey key: String) -> Any? {
    let value = propertyCache?.object(forKey: NSString(string: key))
    if let archived = value as? ArchivedValue { return archived.value }
    return value is NSNull ? nil : value
  }

  /// Sets the value of a property; nil removes it.
  open func setValue(_ value: Any?, forKey key: String) {
    let cache = propertyCache ?? NSMutableDictionary()
    if let value = flattened(value) {
      cache.setObject(value, forKey: NSString(string: key))
    } else {
      cache.removeObject(forKey: NSString(string: key))
    }
    if propertyCache == nil { propertyCache = cache }
  }

  open override var description: String {
    "<\(type(of: self)): \(objectID)>"
  }
}

extension NSAtomicStoreCacheNode: KeyValueCoding, ObjectIdentified {
  package var comparisonIdentifier: AnyHashable { AnyHashable(objectID) }
}
