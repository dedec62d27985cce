import Foundation
import WatershedSQLite

/// Copies what a migration by objects does not: the store's identity, its history, and the metadata
/// of mirrorings, with the rows' new keys.
struct MetadataCopy {
  let from: URL
  let to: URL
  let keys: [MigratedKey]
  let mapping: NSMappingModel
  let source: StoreSchema
  let destination: StoreSchema

  /// No other connection opens the copy before it has replaced the store.
  func carry(identifier: String, metadata: [String: Any]) throws {
    let old = try SQLiteConnection(path: from.path, mode: .readOnly)
    let new = try SQLiteConnection(path: to.path, mode: .readWrite)
    try new.transaction {
      try copyTables(old, new)
      try noteKeys(new)
      try noteDeletions(old, new)
      try moveHistory(new)
      try moveMirroringMetadata(new)
      try new.execute("DROP TABLE temp.WSKEYS")
      var merged = try StoreMetadata.read(new)?.metadata ?? [:]
      for (key, value) in metadata where merged[key] == nil { merged[key] = value }
      merged[NSStoreUUIDKey] = identifier
      try StoreMetadata.write(merged, to: new)
    }
  }

  /// Copies every table that is not part of the source's model unchanged.
  private func copyTables(_ old: SQLiteConnection, _ new: SQLiteConnection) throws {
    let model = Set(source.tables.map(\.name) + source.joins.map(\.name))
    let present = Set(try new.query("SELECT name FROM sqlite_master") { $0.text(0) })
    let items = try old.query(
      "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL "
        + "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid"
    ) { ($0.text(0), $0.text(1), $0.text(2), $0.text(3)) }
    var copied: Set<String> = []
    for (type, name, _, sql) in items
    where type == "table" && !present.contains(name) && !model.contains(name)
      && !name.hasPrefix("Z_")
    {
      try new.execute(sql)
      try Self.copyRows(of: name, old, new)
      copied.insert(name)
    }
    for (type, _, table, sql) in items where type == "index" && copied.contains(table) {
      try new.execute(sql)
    }
    let numbers = try old.query(
      "SELECT Z_ENT, Z_NAME, Z_SUPER, Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT >= ?",
      [.integer(Int64(ExistingTables.firstReservedNumber))]
    ) { [$0.value(0), $0.value(1), $0.value(2), $0.value(3)] }
    for row in numbers {
      try new.run("INSERT OR REPLACE INTO Z_PRIMARYKEY VALUES (?, ?, ?, ?)", row)
    }
  }

  private static func copyRows(
    of table: String,
    _ old: SQLiteConnection,
    _ new: SQLiteConnection
  ) throws {
    let select = try old.makeStatement("SELECT * FROM \"\(table)\"")
    let count = select.columnCount
    let marks = (0..<count).map { _ in "?" }.joined(separator: ", ")
    let insert = try new.makeStatement("INSERT INTO \"\(table)\" VALUES (\(marks))")
    while try select.step() { try insert.run((0..<count).map { select.value($0) }) }
  }

  /// The keys of rows before and after the migration, found by the number of the former entity in the history, and
  /// by its name in the metadata.
  static let keyTable = """
    CREATE TEMP TABLE WSKEYS (FENT INTEGER, FNAME TEXT, FPK INTEGER, ENT INTEGER, NAME TEXT, \
    PK INTEGER, DELETED INTEGER NOT NULL, PRIMARY KEY (FENT, FPK), UNIQUE (FNAME, FPK), \
    UNIQUE (ENT, PK))
    """

  private func noteKeys(_ new: SQLiteConnection) throws {
    try new.execute(Self.keyTable)
    for key in orderedKeys {
      guard let former = source.entity(named: key.formerEntity),
        let current = destination.entity(named: key.entity)
      else { continue }
      try new.run(
        "INSERT OR IGNORE INTO temp.WSKEYS VALUES (?, ?, ?, ?, ?, ?, 0)",
        [
          .integer(Int64(former.number)), .text(former.name), .integer(key.formerKey),
          .integer(Int64(current.number)), .text(current.name), .integer(key.key),
        ]
      )
    }
  }

  /// The pairs of rows, with each row's successor before other rows that were made of it.
  ///
  /// A mapping model may make an author of each note's text beside the note: history and metadata of
  /// the note are the new note's. An author of several notes has no history of theirs.
  private var orderedKeys: [MigratedKey] {
    let names = Set(keys.map(\.formerEntity))
    let successors = Dictionary(uniqueKeysWithValues: names.map { ($0, successor(of: $0)?.name) })
    func isSuccessor(_ key: MigratedKey) -> Bool { successors[key.formerEntity] == key.entity }
    return keys.filter(isSuccessor) + keys.filter { !isSuccessor($0) }
  }

  /// Gives deleted rows of the history keys that no row has or will have.
  ///
  /// The migration assigns keys from 1 again, so a deleted row's former key now belongs to another
  /// row. A reader of the history would delete that one. The mirroring's record of the deleted row
  /// gets the new key too, so that the deletion still refers to it.
  private func noteDeletions(_ old: SQLiteConnection, _ new: SQLiteConnection) throws {
    guard try hasHistory(new) else { return }
    for former in source.entities {
      guard let current = successor(of: former.name) else { continue }
      let keys = try new.query(
        "SELECT DISTINCT ZENTITYPK FROM ACHANGE WHERE ZCHANGETYPE = 2 AND ZENTITY = ? ORDER BY 1",
        [.integer(Int64(former.number))]
      ) { $0.int64(0) }
      guard !keys.isEmpty else { continue }
      var last = max(
        try lastKey(former.rootNumber, old),
        try lastKey(current.rootNumber, new)
      )
      for key in keys {
        last += 1
        try new.run(
          "INSERT OR IGNORE INTO temp.WSKEYS VALUES (?, ?, ?, ?, ?, ?, 1)",
          [
            .integer(Int64(former.number)), .text(former.name), .integer(key),
            .integer(Int64(current.number)), .text(current.name), .integer(last),
          ]
        )
      }
      try new.run(
        "UPDATE Z_PRIMARYKEY SET Z_MAX = ? WHERE Z_ENT = ?",
        [.integer(last), .integer(Int64(current.rootNumber))]
      )
    }
  }

  /// The destination entity to which the rows of a source entity belong, deleted ones included.
  private func successor(of former: String) -> EntityTable? {
    if let same = destination.entity(named: former) { return same }
    let renamed = destination.entities.first {
      $0.layout.entity.renamingIdentifier == former
    }
    if let renamed { return renamed }
    let mapped = mapping.entityMappings.first {
      $0.sourceEntityName == former && $0.destinationEntityName != nil
    }
    return mapped?.destinationEntityName.flatMap { destination.entity(named: $0) }
  }

  /// The highest assigned key in an inheritance tree.
  private func lastKey(_ root: Int32, _ connection: SQLiteConnection) throws -> Int64 {
    let found = try connection.scalar(
      "SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT = ?",
      [.integer(Int64(root))]
    )
    if case .integer(let last)? = found { return last }
    return 0
  }

  private func hasHistory(_ connection: SQLiteConnection) throws -> Bool {
    try connection.scalar("SELECT 1 FROM sqlite_master WHERE name = 'ACHANGE'") != nil
  }

  /// Converts the changes in their transactions and order; changes of rows that no longer exist are
  /// deleted.
  private func moveHistory(_ new: SQLiteConnection) throws {
    guard try hasHistory(new) else { return }
    // A deleted row was recorded as one, if its entity still exists, renamed or not.
    try new.execute(
      """
      DELETE FROM ACHANGE WHERE NOT EXISTS (SELECT 1 FROM temp.WSKEYS AS k \
      WHERE k.FENT = ZENTITY AND k.FPK = ZENTITYPK AND k.DELETED = (ZCHANGETYPE = 2))
      """
    )
    try moveBits(new)
    try moveTombstones(new)
    try new.execute(
      """
      UPDATE ACHANGE SET ZENTITY = k.ENT, ZENTITYPK = k.PK FROM temp.WSKEYS AS k \
      WHERE k.FENT = ZENTITY AND k.FPK = ZENTITYPK
      """
    )
  }

  private func moveBits(_ new: SQLiteConnection) throws {
    let names = Dictionary(
      orderedKeys.map { ($0.formerEntity, $0.entity) },
      uniquingKeysWith: { first, _ in first }
    )
    var histories: [Int64: (HistoryColumns, HistoryColumns, [String: [String]])] = [:]
    for (former, current) in names {
      guard let before = source.entity(named: former),
        let after = destination.entity(named: current)
      else { continue }
      let former = FormerNames(mapping, from: before, to: after)
      let present = Dictionary(grouping: after.history.places.keys) { former.name(of: $0) ?? "" }
      histories[Int64(before.number)] = (before.history, after.history, present)
    }
    let function = "WatershedHistoryColumns"
    try new.register(function: function, argumentCount: 2) { arguments in
      guard case .integer(let number) = arguments[0], case .blob(let bits) = arguments[1],
        let (before, after, present) = histories[number]
      else { return arguments[1] }
      return .blob(after.bits(names: before.names(in: bits).flatMap { present[$0] ?? [] }))
    }
    try new.execute(
      "UPDATE ACHANGE SET ZCOLUMNS = \(function)(ZENTITY, ZCOLUMNS) "
        + "WHERE ZCHANGETYPE <> 2 AND ZCOLUMNS IS NOT NULL"
    )
  }

  /// Moves the preserved values of deletions, whose columns go by the names in the model.
  private func moveTombstones(_ new: SQLiteConnection) throws {
    let present = try new.query(
      "SELECT name FROM pragma_table_info('ACHANGE') WHERE name LIKE 'ZTOMBSTONE%'"
    ) { $0.text(0) }
    let tombstones = TombstoneColumns(connection: new)
    try tombstones.add(destination.tombstoneCount, present: present.count)
    for former in source.entities {
      guard let current = successor(of: former.name) else { continue }
      let names = FormerNames(mapping, from: former, to: current)
      try tombstones.move(former, current, formerName: names.name)
    }
  }

  /// Our mirroring identifies an object by entity and key; a record whose row the migration left
  /// out gets no key, one whose row was deleted before gets the key of the deletion.
  private func moveMirroringMetadata(_ new: SQLiteConnection) throws {
    let tables = try new.query(
      """
      SELECT m.name FROM sqlite_master AS m WHERE m.type = 'table' AND m.name LIKE 'WS%' \
      AND (SELECT COUNT(*) FROM pragma_table_info(m.name) WHERE name IN ('ENTITY', 'PK')) = 2
      """
    ) { $0.text(0) }
    for table in tables {
      for sql in Self.moves(of: table) { try new.execute(sql) }
    }
  }

  /// The statements that give the rows of a mirroring's table the new keys of their objects.
  static func moves(of table: String) -> [String] {
    [
      """
      UPDATE \(table) SET PK = NULL WHERE NOT EXISTS (SELECT 1 FROM temp.WSKEYS AS k \
      WHERE k.FNAME = ENTITY AND k.FPK = \(table).PK)
      """,
      // The keys are changed in two steps: a unique index must not contain a new key and an equal old one.
      """
      UPDATE \(table) SET PK = -k.PK - 1, ENTITY = k.NAME FROM temp.WSKEYS AS k \
      WHERE k.FNAME = ENTITY AND k.FPK = \(table).PK
      """,
      "UPDATE \(table) SET PK = -PK - 1 WHERE PK < 0",
    ]
  }
}
