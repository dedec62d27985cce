import OpenCoreData
import WatershedSQLite

/// Updates the metadata for a new version of the model.
extension MirrorSession {
  /// Compares every object with its base, because changes of a migration are not in the history;
  /// then reads the zone from the start and also applies records whose tags are known.
  package func adoptModel() throws {
    try renameEdges()
    try learnFieldKindsFromBases()
    // A change in the history is an edit even if its value equals a default.
    try foldHistory()
    try requestScan()
    try metadata.setMeta(.readsWithNewModel, .integer(1))
    try startRereading(.expired)
  }

  /// Renames the edges in the metadata to the model's names: a migration by objects keeps the
  /// former names, and new names may sort in the other order.
  private func renameEdges() throws {
    typealias Side = EdgeRelationship.Side
    let kinds = try rows.connection.query(
      """
      SELECT DISTINCT FIRSTENTITY, FIRSTRELATIONSHIP, SECONDENTITY, SECONDRELATIONSHIP
      FROM WSMIRROR_EDGE
      """
    ) { row in
      (
        Side(entityName: row.text(0), relationship: row.text(1)),
        Side(entityName: row.text(2), relationship: row.text(3))
      )
    }
    for (first, second) in kinds {
      guard let one = mapping.present(first), let other = mapping.present(second) else {
        // The migration dropped the links: a later model that has them again creates them again,
        // and does not treat them as removed here.
        try rows.connection.run(
          "UPDATE WSMIRROR_EDGE SET LINKED = 0 WHERE FIRSTENTITY = ? AND FIRSTRELATIONSHIP = ? "
            + "AND SECONDENTITY = ? AND SECONDRELATIONSHIP = ?",
          [first, second].flatMap { [.text($0.entityName), .text($0.relationship)] }
        )
        continue
      }
      let relationship = EdgeRelationship(one, other)
      guard (first, second) != (relationship.first, relationship.second) else { continue }
      let isInOrder = relationship.first == one
      try rows.connection.run(
        """
        UPDATE WSMIRROR_EDGE SET FIRSTENTITY = ?, FIRSTRELATIONSHIP = ?, SECONDENTITY = ?,
          SECONDRELATIONSHIP = ?, FIRSTRECORD = \(isInOrder ? "FIRSTRECORD" : "SECONDRECORD"),
          SECONDRECORD = \(isInOrder ? "SECONDRECORD" : "FIRSTRECORD")
        WHERE FIRSTENTITY = ? AND FIRSTRELATIONSHIP = ? AND SECONDENTITY = ?
          AND SECONDRELATIONSHIP = ?
        """,
        [relationship.first, relationship.second, first, second].flatMap {
          [.text($0.entityName), .text($0.relationship)]
        }
      )
    }
  }
}
