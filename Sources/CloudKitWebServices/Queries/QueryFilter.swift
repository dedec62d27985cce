import Foundation

/// One condition of a query.
package struct QueryFilter: Codable, Hashable, Sendable {
  package var comparator: QueryComparator
  /// Absent for the token comparators: all searchable fields.
  package var fieldName: String?
  package var systemFieldName: String?
  package var fieldValue: FieldValue?
  /// The distance in metres, for `NEAR`.
  package var distance: Double?

  package init(
    comparator: QueryComparator,
    fieldName: String? = nil,
    systemFieldName: String? = nil,
    fieldValue: FieldValue? = nil,
    distance: Double? = nil
  ) {
    self.comparator = comparator
    self.fieldName = fieldName
    self.systemFieldName = systemFieldName
    self.fieldValue = fieldValue
    self.distance = distance
  }
}
