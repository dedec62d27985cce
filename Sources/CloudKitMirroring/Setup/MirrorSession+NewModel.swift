import OpenCoreData
import WatershedSQLite

/// Updates the metadata for a new version of the model.
extension MirrorSession {
  /// Compares every object with its base, because changes of a migration are not in the history;
  /// then reads the zone from the start and also applies records whose tags are known.
  package func adoptModel() throws {
    // No undo of an object's deletion outlives a migration, and its entity may have another name.
    try metadata.forgetUnsentKeys()
    try renameEdges()
    try learnFieldKindsFromBases()
    // The scan folds the history first, whose rest may be long.
    try requestScan()
    try metadata.setMeta(.readsWithNewModel, .integer(1))
    try startRereading(.expired)
  }

  private typealias Side = EdgeRelationship.Side

  /// Gives the edges in the metadata the entities of their objects' records: a mapping model may
  /// rename an entity without a renaming identifier, and the records have followed their objects.
  private func followRecords() throws {
    for side in ["FIRST", "SECOND"] {
      let kinds = try rows.connection.query(
        """
        SELECT DISTINCT e.\(side)ENTITY, e.\(side)RELATIONSHIP, r.ENTITY
        FROM WSMIRROR_EDGE AS e JOIN WSMIRROR_RECORD AS r ON r.NAME = e.\(side)RECORD
        WHERE r.PK IS NOT NULL
        """
      ) { row in
        (Side(entityName: row.text(0), relationship: row.text(1)), row.text(2))
      }
      for (former, entityName) in kinds where mapping.present(former) == nil {
        guard let present = mapping.side(former.relationship, ofEntity: entityName) else {
          continue
        }
        try rows.connection.run(
          """
          UPDATE WSMIRROR_EDGE SET \(side)ENTITY = ?, \(side)RELATIONSHIP = ?
          WHERE \(side)ENTITY = ? AND \(side)RELATIONSHIP = ?
            AND \(side)RECORD IN (SELECT NAME FROM WSMIRROR_RECORD WHERE ENTITY = ?)
          """,
          [
            .text(present.entityName), .text(present.relationship), .text(former.entityName),
            .text(former.relationship), .text(entityName),
          ]
        )
      }
    }
  }

  /// Renames the edges in the metadata to the model's names: a migration by objects keeps the
  /// former names, and new names may sort in the other order.
  private func renameEdges() throws {
    try followRecords()
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
