/// An edit or object that lost against a deletion or a restored server, as the metadata keeps it.
package struct RecoveredEdit: Hashable, Sendable {
  package var id: Int64 = 0
  package var record: String
  package var entityName: String
  package var reason: String
  /// Seconds since 2001.
  package var noted: Double
  /// Under the fields of the record; the record names of a many-to-many relationship stand under the
  /// relationship's own name, a line for each.
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
