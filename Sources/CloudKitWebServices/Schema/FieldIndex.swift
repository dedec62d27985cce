/// The ways a field can be indexed, in the order that an export writes them.
package enum FieldIndex: String, Codable, Hashable, Sendable, CaseIterable {
  /// Equality and membership filters.
  case queryable = "QUERYABLE"
  /// Words of a string.
  case searchable = "SEARCHABLE"
  /// Order and ranges.
  case sortable = "SORTABLE"
}
