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
  /// The developer's annotations of the mapping.
  open var userInfo: [AnyHashable: Any]?

  /// Whether the expression copies the source's property of the same name, if there is one.
  var isGenerated = false

  /// Creates a mapping without a property.
  public required override init() {
    super.init()
  }

  /// Mappings with equal contents are equal.
  open override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? NSPropertyMapping else { return false }
    if other === self { return true }
    guard name == other.name, valueExpression == other.valueExpression else { return false }
    return NSDictionary(dictionary: userInfo ?? [:]).isEqual(to: other.userInfo ?? [:])
  }

  open override var hash: Int { name.hashValue }
}
