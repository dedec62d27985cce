/// The definition of a table, used for both engines.
struct StorageTable: Sendable {
  /// The family of a table, which decides its location in a cluster.
  enum Family: Sendable {
    /// A table of users' databases: the partition leads every key.
    case partition
    /// A small table that all partitions share.
    case directory
    /// A table of the service itself, on the coordinator.
    case local
  }

  struct Column: Sendable {
    enum Kind: Sendable { case integer, text, bytes }

    var name: String
    var kind: Kind
    var isOptional = false
    /// The default value of an integer.
    var standard: Int64?
    /// The value of a replaced row in SQL; nil: the new row's value.
    var replacement: String?

    static func integer(_ name: String, standard: Int64? = nil) -> Column {
      Column(name: name, kind: .integer, standard: standard)
    }
    static func text(_ name: String) -> Column { Column(name: name, kind: .text) }
    static func bytes(_ name: String) -> Column { Column(name: name, kind: .bytes) }

    /// The column of rows whose replacement keeps the greater of both values, if another column is
    /// equal: a writer that decided on an older row does not decrease the value.
    func keepingGreatest(in table: String, sameBy other: String) -> Column {
      var column = self
      column.replacement =
        "CASE WHEN \(table).\(other) = excluded.\(other) AND \(table).\(name) > excluded.\(name) "
        + "THEN \(table).\(name) ELSE excluded.\(name) END"
      return column
    }

    var optional: Column {
      var column = self
      column.isOptional = true
      return column
    }
  }

  struct Index: Sendable {
    var name: String
    var columns: [String]
    var isUnique = false
    /// The SQL condition of a partial index.
    var condition: String?
    /// A PostgreSQL-only condition that is true for all rows: the index serves only statements with
    /// the same condition, by `SQLDialect.naming`.
    var naming: String?
    /// Whether the case of ASCII letters is ignored; that of other letters differs between the
    /// engines.
    var isFolded: Bool

    init(
      _ name: String,
      _ columns: [String],
      isUnique: Bool = false,
      where condition: String? = nil,
      naming: String? = nil,
      isFolded: Bool = false
    ) {
      self.name = name
      self.columns = columns
      self.isUnique = isUnique
      self.condition = condition
      self.naming = naming
      self.isFolded = isFolded
    }
  }

  var name: String
  var family: Family
  var columns: [Column]
  var primaryKey: [String]
  var indexes: [Index]
  /// Whether rows are stored apart from the key's index: in a table that is ordered by a random key
  /// each insertion would move large rows.
  var hasLargeRows: Bool

  init(
    _ name: String,
    _ family: Family,
    _ columns: [Column],
    key: [String],
    indexes: [Index] = [],
    hasLargeRows: Bool = false
  ) {
    self.name = name
    self.family = family
    self.columns = columns
    primaryKey = key
    self.indexes = indexes
    self.hasLargeRows = hasLargeRows
  }
}

extension StorageTable {
  /// How an insertion treats a row with the same key.
  enum Conflict: Hashable, Sendable {
    case refused
    case replaced
    case ignored
  }

  /// The statements that create the table and its indexes.
  func definition(_ dialect: SQLDialect) -> [String] {
    let key = primaryKey.joined(separator: ", ")
    var lines = columns.map { column in
      var line = "\(column.name) \(dialect.type(of: column.kind))"
      if !column.isOptional { line += " NOT NULL" }
      if let standard = column.standard { line += " DEFAULT \(standard)" }
      return line
    }
    let isClustered = dialect == .sqlite && !hasLargeRows
    let isHeap = dialect == .sqlite && hasLargeRows
    if !isHeap { lines.append("PRIMARY KEY (\(key))") }
    let ending = isClustered ? " WITHOUT ROWID" : ""
    var statements = [
      "CREATE TABLE \(name) (\n  \(lines.joined(separator: ",\n  "))\n)\(ending)"
    ]
    if isHeap { statements.append("CREATE UNIQUE INDEX \(name)_by_key ON \(name) (\(key))") }
    return statements + indexes.map { definition(of: $0, dialect) }
  }

  func definition(of index: Index, _ dialect: SQLDialect) -> String {
    let naming = dialect == .postgreSQL ? index.naming : nil
    let condition = (index.condition ?? naming).map { " WHERE \($0)" } ?? ""
    let columns = index.columns.map { index.isFolded ? "lower(\($0))" : $0 }
    return "CREATE \(index.isUnique ? "UNIQUE " : "")INDEX \(index.name) ON \(name) "
      + "(\(columns.joined(separator: ", ")))\(condition)"
  }

  /// An insertion of a number of whole rows, with their values in the order of columns.
  func insertion(rows: Int, _ conflict: Conflict) -> String {
    let names = columns.map(\.name)
    var next = 0
    let values = (0..<rows).map { _ in
      "("
        + names.map { _ in
          next += 1
          return "$\(next)"
        }.joined(separator: ", ") + ")"
    }
    var sql = "INSERT INTO \(name) (\(names.joined(separator: ", "))) VALUES "
    sql += values.joined(separator: ", ")
    switch conflict {
    case .refused: break
    case .ignored: sql += " ON CONFLICT DO NOTHING"
    case .replaced:
      let rest = columns.filter { !primaryKey.contains($0.name) }
      sql += " ON CONFLICT (\(primaryKey.joined(separator: ", "))) DO "
      sql +=
        rest.isEmpty
        ? "NOTHING"
        : "UPDATE SET "
          + rest.map { "\($0.name) = \($0.replacement ?? "excluded.\($0.name)")" }
          .joined(separator: ", ")
    }
    return sql
  }
}
