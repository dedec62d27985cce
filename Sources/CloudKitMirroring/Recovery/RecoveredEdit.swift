/// An edit or object that a deletion or a restored server replaced, as the metadata stores it.
package struct RecoveredEdit: Hashable, Sendable {
  package var id: Int64 = 0
  package var record: String
  package var entityName: String
  package var reason: String
  /// Seconds since 2001.
  package var noted: Double
  /// The values by field of the record; the record names of a many-to-many relationship are under the
  /// relationship's own name, one per line.
  package var fields: FieldBag

  package init(
    record: String,
    entityName: String,
    reason: String,
    noted: Double,
    fields: FieldBag
  ) {
    self.record = record
    self.entityName = entityName
    self.reason = reason
    self.noted = noted
    self.fields = fields
  }
}
