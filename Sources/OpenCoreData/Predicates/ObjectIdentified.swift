/// Something that stands for a stored object: the object itself or its identifier.
///
/// A predicate compares both kinds with each other by this identifier, so `post == %@` takes an
/// object as well as its object ID.
package protocol ObjectIdentified {
  /// Equal for an object and its object ID.
  var comparisonIdentifier: AnyHashable { get }
}
