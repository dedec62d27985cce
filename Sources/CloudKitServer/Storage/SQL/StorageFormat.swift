/// The shapes that the tables have had, counted up.
///
/// A change comes in two steps, so that old and new servers run side by side while one by one they
/// are replaced. The first adds what the new servers need and leaves alone what the old ones use:
/// `oldestServer` stays. A later one takes away what only the old ones used, and raises it.
struct StorageFormat: Sendable {
  struct Step: Sendable {
    /// The version it leads to, from the one before.
    var version: Int64
    /// The oldest server that understands the tables afterwards.
    var oldestServer: Int64
    var statements: @Sendable (SQLDialect) -> [String]
    /// What follows the statements and SQL alone cannot do, as to hash a column.
    var convert: (@Sendable (any SQLSession) throws -> Void)?
  }

  /// The version that this server makes and knows.
  var version: Int64
  /// For tables that it makes anew.
  var oldestServer: Int64
  /// From the oldest version that it can bring forward.
  var steps: [Step]

  static let current = StorageFormat(
    version: 7,
    oldestServer: 7,
    steps: [
      secondVersion, thirdVersion, fourthVersion, fifthVersion, sixthVersion, seventhVersion,
    ]
  )

  /// Makes the tables, or brings them to this version, inside a transaction of its own.
  ///
  /// Of several servers that start at once, one does it and the others wait.
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

  /// On a cluster several changes of tables in one transaction go over one connection to each
  /// machine, as Citus asks for.
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
    // For those who look at the file's header, as the first version did.
    if session.dialect == .sqlite { try session.run("PRAGMA user_version = \(version)", []) }
  }

  /// Throws where another server has since taken away what this one needs.
  func check(_ session: some SQLSession) throws {
    guard let found = try found(session), found.oldestServer > version else { return }
    throw StorageVersionError(found: found.version, needed: found.oldestServer, known: version)
  }

  /// Nil where there are no tables yet.
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
    // The first version did not say which it was.
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
  /// Keeps other servers that start on the same PostgreSQL waiting until the transaction ends; in
  /// SQLite a transaction that writes is alone already.
  func lockService() throws {
    guard dialect == .postgreSQL else { return }
    _ = try query(
      "SELECT 1 FROM pg_advisory_xact_lock(hashtext('watershed ' || current_schema()))",
      []
    ) { _ in }
  }
}

/// The data was written by another version of the server.
package struct StorageVersionError: Error, Hashable, CustomStringConvertible {
  var found: Int64
  /// The oldest server that understands it; nil where the data is the old one.
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
