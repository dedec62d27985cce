/// What a store holds of one object at one version.
///
/// Immutable, shared by all who read it.
package final class Row: Sendable {
  package let reference: RowReference
  /// `Z_OPT`: 1 at insert, one more with each saved update.
  package let version: Int64
  /// By row index of the entity's layout: attributes first, then to-ones.
  package let values: [RowValue]

  package init(reference: RowReference, version: Int64, values: [RowValue]) {
    self.reference = reference
    self.version = version
    self.values = values
  }
}
