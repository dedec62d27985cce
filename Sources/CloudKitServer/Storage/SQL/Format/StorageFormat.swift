/// The versions of the tables.
///
/// The SQL of a step is literal text: what a released version did to the tables does not change with
/// their later declarations. A test compares the tables after all steps with `StorageTables`, which
/// creates the tables of a new storage.
///
/// A change needs two steps, so that old and new servers can run together during an upgrade. The
/// first adds what the new servers need and keeps what the old ones use: `oldestServer` is
/// unchanged. A later one removes what only the old ones used, and raises it.
struct StorageFormat: Sendable {
  struct Step: Sendable {
    /// The version after the step.
    var version: Int64
    /// The oldest server version that supports the tables after the step.
    var oldestServer: Int64
    var statements: @Sendable (SQLDialect) -> [String]
    /// Conversions after the statements that SQL can't express, such as hashing a column.
    var convert: (@Sendable (any SQLSession) throws -> Void)?
  }

  /// The version that this server creates and supports.
  var version: Int64
  /// The oldest server version for newly created tables.
  var oldestServer: Int64
  /// The steps from the oldest supported version.
  var steps: [Step]

  static let current = StorageFormat(
    version: 7,
    oldestServer: 7,
    steps: [
      sharedTables, directoryEntries, conditionalIndexes, addressIndex, replyDevices, tokenDigests,
    ]
  )

  /// Creates the tables, or migrates them to this version, in its own transaction.
  ///
  /// If several servers start at the same time, one does it and the others wait.
  func prepare(_ session: some SQLSession) throws {
    let dialect = session.dialect
    try session.lockService()
    guard let found = try found(session) else {
      for table in StorageTables.all {
        for statement in table.definition(dialect) { try session.run(statement, []) }
      }
      try note(version, oldestServer, session)
      return
    }
    guard found.oldestServer <= version else {
      throw StorageVersionError(found: found.version, needed: found.oldestServer, known: version)
    }
    guard found.version < version else { return }
    let missing = steps.filter { $0.version > found.version && $0.version <= version }
    guard missing.map(\.version) == Array(found.version + 1...version) else {
      throw StorageVersionError(found: found.version, needed: nil, known: version)
    }
    if dialect == .postgreSQL { try changeTablesInSequence(session) }
    for step in missing {
      for statement in step.statements(dialect) { try session.run(statement, []) }
      try step.convert?(session)
      try note(step.version, step.oldestServer, session)
    }
  }

  /// On a cluster several changes of tables in one transaction must use one connection to each
  /// machine, as Citus requires.
  private func changeTablesInSequence(_ session: some SQLSession) throws {
    let isCluster = try session.query(
      "SELECT 1 WHERE to_regclass('pg_dist_partition') IS NOT NULL",
      []
    ) { _ in true }
    guard !isCluster.isEmpty else { return }
    try session.run("SET LOCAL citus.multi_shard_modify_mode TO 'sequential'", [])
  }

  private func note(_ version: Int64, _ oldestServer: Int64, _ session: some SQLSession) throws {
    let facts = ServiceFacts(session: session)
    try facts.set("format", version)
    try facts.set("oldest server", oldestServer)
    // For servers that read the version from the file's header, as the first version did.
    if session.dialect == .sqlite { try session.run("PRAGMA user_version = \(version)", []) }
  }

  /// Throws if another server's migration has removed what this one needs.
  func check(_ session: some SQLSession) throws {
    guard let found = try found(session), found.oldestServer > version else { return }
    throw StorageVersionError(found: found.version, needed: found.oldestServer, known: version)
  }

  /// Whether there are no tables yet.
  func isMissing(_ session: some SQLSession) throws -> Bool { try found(session) == nil }

  /// Nil if there are no tables yet.
  private func found(
    _ session: some SQLSession
  ) throws -> (version: Int64, oldestServer: Int64)? {
    let sql =
      switch session.dialect {
      case .sqlite: "SELECT 1 FROM sqlite_master WHERE name = 'service'"
      case .postgreSQL: "SELECT 1 WHERE to_regclass('service') IS NOT NULL"
      }
    guard try !session.query(sql, [], { _ in true }).isEmpty else { return nil }
    let facts = ServiceFacts(session: session)
    // The first version stored no version number.
    let version = try facts.number("format") ?? 1
    if session.dialect == .sqlite,
      let header = try session.query("PRAGMA user_version", [], { $0.int64(0) }).first,
      header > version
    {
      return (header, header)
    }
    return (version, try facts.number("oldest server") ?? version)
  }
}

extension SQLSession {
  /// Makes other servers that start with the same PostgreSQL wait until the transaction ends; an
  /// SQLite transaction that writes is exclusive already.
  func lockService() throws {
    guard dialect == .postgreSQL else { return }
    _ = try query(
      "SELECT 1 FROM pg_advisory_xact_lock(hashtext('watershed ' || current_schema()))",
      []
    ) { _ in }
  }
}

/// The error for data of another version of the server.
package struct StorageVersionError: Error, Hashable, CustomStringConvertible {
  var found: Int64
  /// The oldest server version that supports the data; nil if the data is too old.
  var needed: Int64?
  var known: Int64

  package var description: String {
    if let needed {
      "The server's data has format \(found) and needs a server of format \(needed) or newer; "
        + "this one knows format \(known). Use the server that wrote it, or a newer one."
    } else {
      "The server's data has format \(found), which is too old for this server of format "
        + "\(known). Start a server between the two on it first, which brings it forward."
    }
  }
}
