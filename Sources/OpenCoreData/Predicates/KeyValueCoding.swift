/// Reads property values by name, for predicates and sort descriptors.
///
/// Foundation on Linux has no `value(forKey:)`, so objects that can be evaluated conform to this
/// protocol. Dictionaries and collections need no conformance.
package protocol KeyValueCoding {
  /// The value of the property, or nil if it has none.
  func value(forKey key: String) -> Any?
}

/// A faster accessor of objects with typed rows: no boxing between the row and a comparison.
package protocol RowValueReading {
  /// The value of the attribute in the object's row.
  ///
  /// Nil means that `value(forKey:)` has to be called: the key names a relationship, a transient or
  /// an unknown property.
  func rowValue(forKey key: String) -> RowValue?
}
