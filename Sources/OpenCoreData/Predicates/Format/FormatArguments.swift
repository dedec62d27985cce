import Foundation

// Code for Apple's platforms has `NSPredicate(format: "id == %@", id as CVarArg)`, where objects
// and bridged values are variadic arguments. Here the initializers of predicates accept any value,
// so these conformances only make that code compile.

/// A value for a `%@` in a format string.
///
/// Differs from Core Data: outside of predicates and expressions, where C reads the arguments, the
/// object that stands for the value is never released.
public protocol PredicateFormatArgument: CVarArg {}

extension PredicateFormatArgument {
  /// The address of an object, as C code expects it for `%@`.
  public var _cVarArgEncoding: [Int] {
    let object = (self as? NSObject) ?? NSString(string: "\(self)")
    return [Int(bitPattern: Unmanaged.passRetained(object).toOpaque())]
  }
}

extension UUID: PredicateFormatArgument, @retroactive CVarArg {}
extension Date: PredicateFormatArgument, @retroactive CVarArg {}
extension URL: PredicateFormatArgument, @retroactive CVarArg {}
extension Data: PredicateFormatArgument, @retroactive CVarArg {}
extension Decimal: PredicateFormatArgument, @retroactive CVarArg {}
extension Array: PredicateFormatArgument, @retroactive CVarArg {}
extension Set: PredicateFormatArgument, @retroactive CVarArg {}
extension Dictionary: PredicateFormatArgument, @retroactive CVarArg {}
extension NSNumber: PredicateFormatArgument, @retroactive CVarArg {}
extension NSDate: PredicateFormatArgument, @retroactive CVarArg {}
extension NSUUID: PredicateFormatArgument, @retroactive CVarArg {}
extension NSURL: PredicateFormatArgument, @retroactive CVarArg {}
extension NSData: PredicateFormatArgument, @retroactive CVarArg {}
extension NSNull: PredicateFormatArgument, @retroactive CVarArg {}
extension NSArray: PredicateFormatArgument, @retroactive CVarArg {}
extension NSSet: PredicateFormatArgument, @retroactive CVarArg {}
extension NSOrderedSet: PredicateFormatArgument, @retroactive CVarArg {}
extension NSDictionary: PredicateFormatArgument, @retroactive CVarArg {}
extension NSPredicate: PredicateFormatArgument, @retroactive CVarArg {}
extension NSExpression: PredicateFormatArgument {}
extension NSManagedObject: PredicateFormatArgument {}
extension NSManagedObjectID: PredicateFormatArgument {}
