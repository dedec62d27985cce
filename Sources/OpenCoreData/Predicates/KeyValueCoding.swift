/// Gives property values by name, as predicates and sort descriptors ask for them.
///
/// Foundation on Linux has no `value(forKey:)`, so objects that take part in evaluation say so by
/// this protocol. Dictionaries and collections need no conformance.
package protocol KeyValueCoding {
  /// The value of the property, or nil where it has none.
  func value(forKey key: String) -> Any?
}

/// A faster door for objects that hold typed rows: no boxes between the row and a comparison.
package protocol RowValueReading {
  /// The value of the attribute as its row holds it.
  ///
  /// Nil says "ask `value(forKey:)`": the key names a relationship, a transient or an unknown
  /// property.
  func rowValue(forKey key: String) -> RowValue?
}
