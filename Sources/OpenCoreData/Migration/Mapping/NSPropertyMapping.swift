import Foundation

/// How one property of a destination entity gets its value.
open class NSPropertyMapping: NSObject {
  /// The name of the property in the destination entity.
  open var name: String?
  /// The expression that computes the value.
  ///
  /// Its variables are `$manager`, `$source`, `$destination`, `$entityMapping`, `$propertyMapping`
  /// and `$entityPolicy`.
  open var valueExpression: NSExpression?
  /// What the developer noted about the mapping.
  open var userInfo: [AnyHashable: Any]?

  /// Whether the expression takes over what has the same name, if the source has it.
  var isGenerated = false

  /// Creates a mapping of no property.
  public required override init() {
    super.init()
  }

  /// Mappings are equal that say the same.
  open override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? NSPropertyMapping else { return false }
    if other === self { return true }
    guard name == other.name, valueExpression == other.valueExpression else { return false }
    return NSDictionary(dictionary: userInfo ?? [:]).isEqual(to: other.userInfo ?? [:])
  }

  open override var hash: Int { name.hashValue }
}
