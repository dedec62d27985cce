/// A value that identifies a stored object: the object itself or its identifier.
///
/// A predicate compares both by this identifier, so `post == %@` accepts an object as well as its
/// object ID.
package protocol ObjectIdentified {
  /// Equal for an object and its object ID.
  var comparisonIdentifier: AnyHashable { get }
}
