import Foundation
import WatershedSQLite

/// Invariants of a store between two writes; the tests check them in random programs.
extension SQLiteStore {
  /// The broken invariants, a sentence each, of the row cache and of the file.
  ///
  /// The last change of each object in the history must agree with its row, which holds of a file
  /// that has kept its history since it was created.
  package func brokenInvariants() throws -> [String] {
    try inTransaction { writer in
      var broken = cache.brokenInvariants()
      broken += try brokenCache(writer)
      broken += try brokenRules(Self.tableRules(schema), writer.connection)
      if hasHistoryTables {
        broken += try brokenRules(Self.historyRules, writer.connection)
      }
      if keepsHistory {
        broken += try brokenRules(Self.historyRules(of: schema), writer.connection)
      }
      return try broken + brokenMetadata(writer.connection)
    }
  }

  // MARK: Row cache

  /// The rows and members that the cache has otherwise than the file.
  private func brokenCache(_ writer: StoreConnection) throws -> [String] {
    var broken: [String] = []
    let contents = cache.contents
    for row in contents.rows {
      guard let stored = try readRow(row.reference, from: writer) else {
        broken.append("the row of \(row.reference) is cached, and not stored")
        continue
      }
      if row.version != stored.version || row.values != stored.values {
        broken.append(
          "the row of \(row.reference) is cached as \(row.version) \(row.values), "
            + "and stored as \(stored.version) \(stored.values)"
        )
      }
    }
    for (source, index, references) in contents.members {
      let entity = try table(of: source)
      guard entity.layout.toManys.indices.contains(index),
        let query = try writer.members(at: index, from: entity, in: schema)
      else {
        broken.append("members of relationship \(index) of \(source) are cached, which has none")
        continue
      }
      var members: [RowMember] = []
      try readMembers(query, from: source, on: writer, to: &members)
      let stored = members.map(\.reference)
      if references != stored {
        broken.append(
          "the members of \(entity.layout.toManys[index].name) of \(source) are cached as "
            + "\(references), and stored as \(stored)"
        )
      }
    }
    return broken
  }

  // MARK: Tables

  /// A query that counts what breaks a rule, and the rule's sentence.
  private struct Rule {
    /// A description of the counted rows.
    let sentence: String
    let query: String
  }

  private func brokenRules(_ rules: [Rule], _ connection: SQLiteConnection) throws -> [String] {
    try rules.compactMap { rule in
      guard case .integer(let count)? = try connection.scalar(rule.query), count > 0 else {
        return nil
      }
      return "\(count) \(rule.sentence)"
    }
  }

  private static func tableRules(_ schema: StoreSchema) -> [Rule] {
    var rules: [Rule] = []
    for table in schema.tables {
      let numbers = schema.entities.filter { $0.rootNumber == table.rootNumber }
        .map { "\($0.number)" }.joined(separator: ", ")
      rules += [
        Rule(
          sentence: "rows of \(table.name) have a key that is not counted",
          query: "SELECT COUNT(*) FROM \(table.name) WHERE Z_PK > IFNULL((SELECT Z_MAX FROM "
            + "Z_PRIMARYKEY WHERE Z_ENT = \(table.rootNumber)), 0)"
        ),
        Rule(
          sentence: "rows of \(table.name) have no entity or no version",
          query: "SELECT COUNT(*) FROM \(table.name) WHERE Z_ENT IS NULL OR Z_ENT NOT IN "
            + "(\(numbers)) OR Z_OPT IS NULL OR Z_OPT < 1"
        ),
      ]
    }
    rules += schema.entities.filter { !$0.isAbstract }.flatMap { toOneRules($0, schema) }
    for join in schema.joins {
      guard let source = schema.entity(join.relationship.entity),
        let destination = join.relationship.destinationEntity.flatMap(schema.entity)
      else { continue }
      rules.append(
        Rule(
          sentence: "rows of \(join.name) name a row that is not there",
          query: "SELECT COUNT(*) FROM \(join.name) WHERE "
            + "\(join.sourceColumn) NOT IN (SELECT Z_PK FROM \(source.table)) OR "
            + "\(join.destinationColumn) NOT IN (SELECT Z_PK FROM \(destination.table))"
        )
      )
    }
    return rules
  }

  /// Each to-one with an inverse leads to a row, and each one-to-one leads back.
  ///
  /// A reference without an inverse, or with the rule to do nothing, stays when its row is deleted.
  private static func toOneRules(_ entity: EntityTable, _ schema: StoreSchema) -> [Rule] {
    entity.layout.toOnes.flatMap { slot -> [Rule] in
      guard let rowIndex = slot.rowIndex, let inverse = slot.inverse,
        inverse.deleteRule != .noActionDeleteRule,
        let destination = schema.entity(slot.destinationEntity),
        let column = keyColumn(rowIndex, of: entity)
      else { return [] }
      let rows =
        "FROM \(entity.table) AS source WHERE Z_ENT = \(entity.number) "
        + "AND \(column) IS NOT NULL"
      var rules = [
        Rule(
          sentence: "references '\(slot.name)' of \(entity.name) lead to a row that is not there",
          query: "SELECT COUNT(*) \(rows) AND \(column) NOT IN "
            + "(SELECT Z_PK FROM \(destination.table))"
        )
      ]
      if case .toOne(let index) = destination.layout.slot(named: inverse.name),
        let inverseIndex = destination.layout.toOnes[index].rowIndex,
        let other = keyColumn(inverseIndex, of: destination)
      {
        rules.append(
          Rule(
            sentence: "references '\(slot.name)' of \(entity.name) have an inverse that leads "
              + "elsewhere",
            query: "SELECT COUNT(*) \(rows) AND NOT EXISTS (SELECT 1 FROM \(destination.table) "
              + "AS other WHERE other.Z_PK = source.\(column) AND other.\(other) = source.Z_PK)"
          )
        )
      }
      return rules
    }
  }

  /// The column of a to-one whose destination is in the same file.
  private static func keyColumn(_ rowIndex: Int, of entity: EntityTable) -> String? {
    switch entity.columns[rowIndex].form {
    case .key, .keyAndEntity: entity.columns[rowIndex].name
    default: nil
    }
  }

  // MARK: History

  private static let historyRules: [Rule] = {
    var rules = [
      Rule(
        sentence: "changes belong to no transaction",
        query: "SELECT COUNT(*) FROM ACHANGE WHERE ZTRANSACTIONID IS NULL OR ZTRANSACTIONID NOT IN "
          + "(SELECT Z_PK FROM ATRANSACTION)"
      ),
      Rule(
        sentence: "changes are no insertion, update or deletion",
        query: "SELECT COUNT(*) FROM ACHANGE WHERE ZCHANGETYPE IS NULL "
          + "OR ZCHANGETYPE NOT IN (0, 1, 2)"
      ),
      Rule(
        sentence: "changes have changed properties without an update, or the reverse",
        query: "SELECT COUNT(*) FROM ACHANGE WHERE (ZCOLUMNS IS NULL) = (ZCHANGETYPE = 1)"
      ),
      Rule(
        sentence: "objects are changed twice in one transaction",
        query: "SELECT COUNT(*) FROM (SELECT 1 FROM ACHANGE "
          + "GROUP BY ZTRANSACTIONID, ZENTITY, ZENTITYPK HAVING COUNT(*) > 1)"
      ),
      Rule(
        sentence: "changes have a number below one of a transaction before",
        query: "SELECT COUNT(*) FROM (SELECT MIN(Z_PK) AS first, "
          + "LAG(MAX(Z_PK)) OVER (ORDER BY ZTRANSACTIONID) AS former "
          + "FROM ACHANGE GROUP BY ZTRANSACTIONID) WHERE first < former"
      ),
    ]
    for column in ["ZAUTHORTS", "ZBUNDLEIDTS", "ZCONTEXTNAMETS", "ZPROCESSIDTS"] {
      rules.append(
        Rule(
          sentence: "transactions have a text in \(column) that is not there",
          query: "SELECT COUNT(*) FROM ATRANSACTION WHERE \(column) NOT IN "
            + "(SELECT Z_PK FROM ATRANSACTIONSTRING)"
        )
      )
    }
    for (number, name) in HistoryTables.entities {
      rules.append(
        Rule(
          sentence: "rows of A\(name) have a number that is not counted",
          query: "SELECT COUNT(*) FROM A\(name) WHERE Z_PK > IFNULL((SELECT Z_MAX FROM "
            + "Z_PRIMARYKEY WHERE Z_ENT = \(number)), 0)"
        )
      )
    }
    return rules
  }()

  /// The history's last word about each object of an entity agrees with its table.
  private static func historyRules(of schema: StoreSchema) -> [Rule] {
    schema.entities.filter { !$0.isAbstract }.map { entity in
      Rule(
        sentence: "objects of \(entity.name) are stored after their deletion, or lost without one",
        query: """
          SELECT COUNT(*) FROM (SELECT ZENTITYPK AS key, ZCHANGETYPE AS kind, MAX(Z_PK) \
          FROM ACHANGE WHERE ZENTITY = \(entity.number) GROUP BY ZENTITYPK) WHERE (kind = 2) = \
          EXISTS (SELECT 1 FROM \(entity.table) WHERE Z_PK = key AND Z_ENT = \(entity.number))
          """
      )
    }
  }

  // MARK: Metadata

  private func brokenMetadata(_ connection: SQLiteConnection) throws -> [String] {
    guard let stored = try StoreMetadata.read(connection) else { return ["there is no metadata"] }
    var broken: [String] = []
    if stored.identifier != identifier {
      broken.append("the identifier is \(stored.identifier), not \(identifier ?? "nil")")
    }
    let hashes = NSManagedObjectModel.versionHashes(inStoreMetadata: stored.metadata)
    if hashes != StoreMetadata.hashes(of: schema.model, schema.configuration) {
      broken.append("the version hashes are not those of the model")
    }
    for entity in schema.entities {
      let rows = try connection.query(
        "SELECT Z_NAME, Z_SUPER FROM Z_PRIMARYKEY WHERE Z_ENT = ?",
        [.integer(Int64(entity.number))]
      ) { ($0.text(0), $0.int64(1)) }
      if rows.count != 1 || rows[0] != (entity.name, Int64(entity.superNumber)) {
        broken.append("entity \(entity.number), \(entity.name), is numbered as \(rows)")
      }
    }
    return broken
  }
}
