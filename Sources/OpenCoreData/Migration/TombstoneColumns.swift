import WatershedSQLite

/// Moves the preserved values of deletions to the columns that they have in another model.
///
/// `ACHANGE.ZTOMBSTONEn` is the n-th preserved attribute of the change's entity, in the order of names.
struct TombstoneColumns {
  let connection: SQLiteConnection

  /// Adds the columns that the table lacks.
  func add(_ needed: Int, present: Int) throws {
    for index in 0..<needed where index >= present {
      try connection.execute("ALTER TABLE ACHANGE ADD COLUMN ZTOMBSTONE\(index) BLOB")
    }
  }

  /// Moves the values of an entity's deletions, which still have the former entity's number.
  ///
  /// `formerName` is the former name of a preserved attribute; nil for one that is new. Values of
  /// attributes that are no longer preserved are removed.
  func move(
    _ former: EntityTable,
    _ current: EntityTable,
    formerName: (String) -> String?
  ) throws {
    let before = former.history.preserved.map(\.name)
    let after = current.history.preserved.map { entry in
      formerName(entry.name).flatMap { before.firstIndex(of: $0) }
    }
    let isSame = after == before.indices.map { Optional($0) }
    guard !isSame, !before.isEmpty else { return }
    let terms = (0..<max(before.count, after.count)).map { index in
      let place = after.indices.contains(index) ? after[index] : nil
      return "ZTOMBSTONE\(index) = " + (place.map { "ZTOMBSTONE\($0)" } ?? "NULL")
    }
    try connection.run(
      "UPDATE ACHANGE SET \(terms.joined(separator: ", ")) "
        + "WHERE ZENTITY = \(former.number) AND ZCHANGETYPE = 2"
    )
  }
}
