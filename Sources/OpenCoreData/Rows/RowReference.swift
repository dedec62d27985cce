/// Identifies a row of one store: its concrete entity by `Z_ENT` number, and its primary key.
package struct RowReference: Sendable, Hashable {
  /// The row's `Z_ENT`.
  package var entityNumber: Int32
  /// The row's `Z_PK`.
  ///
  /// Unique in the whole inheritance tree.
  package var key: Int64

  package init(entityNumber: Int32, key: Int64) {
    self.entityNumber = entityNumber
    self.key = key
  }

  /// Hashes one word, since every row look-up hashes a reference; keys are below 2^48.
  package func hash(into hasher: inout Hasher) {
    hasher.combine(key ^ (Int64(entityNumber) << 48))
  }
}
