/// A table as both engines have it: told once, here.
struct StorageTable: Sendable {
  /// What a table belongs to, and so where it is when the data is spread over machines.
  enum Family: Sendable {
    /// Of one user's database: led by the partition in every key.
    case partition
    /// Small and shared by all partitions.
    case directory
    /// Of the service itself; kept where its clients connect.
    case local
  }

  struct Column: Sendable {
    enum Kind: Sendable { case integer, text, bytes }

    var name: String
    var kind: Kind
    var isOptional = false
    /// An integer's value where none is given.
    var standard: Int64?
    /// What a row that replaces another one has here, in SQL; nil: its own value.
    var replacement: String?

    static func integer(_ name: String, standard: Int64? = nil) -> Column {
      Column(name: name, kind: .integer, standard: standard)
    }
    static func text(_ name: String) -> Column { Column(name: name, kind: .text) }
    static func bytes(_ name: String) -> Column { Column(name: name, kind: .bytes) }

    /// The column of rows whose replacement keeps the greater of both values, while another column
    /// is the same: a writer that decided on an older row does not take the value back.
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
    /// A condition in SQL that holds for the rows in it.
    var condition: String?
    /// The same in PostgreSQL alone, and one that every row meets: it serves the statements that
    /// say it, by `SQLDialect.naming`, and no others.
    var naming: String?
    /// The case of ASCII letters does not count; other letters' differs between the engines.
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
  /// Large rows stay in one place, and the key is an index beside them: where keys are random, a
  /// table ordered by its key moves whole rows at every insertion.
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
  /// What happens to a row whose key is there already.
  enum Conflict: Hashable, Sendable {
    case refused
    case replaced
    case ignored
  }

  /// The statements that make the table and its indexes.
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

  /// An insertion of so many whole rows, their values in the order of columns.
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
