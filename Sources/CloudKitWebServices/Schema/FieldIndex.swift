/// The kinds of indexes of a field, in the order of an export.
package enum FieldIndex: String, Codable, Hashable, Sendable, CaseIterable {
  /// Equality and membership filters.
  case queryable = "QUERYABLE"
  /// The words of a string.
  case searchable = "SEARCHABLE"
  /// Sorting and ranges.
  case sortable = "SORTABLE"
}
