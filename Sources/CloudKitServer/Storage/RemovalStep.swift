/// The most that one transaction deletes of rows whose number or size clients choose.
package struct RemovalStep: Hashable, Sendable {
  package var rows: Int
  /// Bytes of the rows' values; the row that exceeds them is deleted too.
  package var bytes: Int64

  package init(rows: Int = 2000, bytes: Int64 = 8 * 1_048_576) {
    self.rows = rows
    self.bytes = bytes
  }

  var isUsedUp: Bool { rows <= 0 || bytes <= 0 }
}

extension ServiceLimits {
  var removalStep: RemovalStep { RemovalStep(rows: rowsPerRemoval, bytes: bytesPerRemoval) }
}
