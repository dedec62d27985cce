// Code that imports Core Data expects Foundation with it, as with Apple's module.
@_exported import Foundation

#if Macros
@_exported import ManagedMacros
#endif

/// The conversions between the collections of Foundation and of Swift, such as `NSSet as? Set<AnyHashable>`.
///
/// A cast finds its conversion at run time. A statically linked program has only those object files of Foundation's
/// archive that some symbol refers to, so without these references a to-many's `NSSet` is no `Set` there.
package var collectionBridges: [any _ObjectiveCBridgeable.Type] {
  [[Any].self, Set<AnyHashable>.self, [AnyHashable: Any].self]
}
