import Testing

@testable import CloudKitServer

/// The form of a statement that a Citus cluster can run, on one machine: every statement that a
/// test sends to PostgreSQL is checked.
///
/// From docs.citusdata.com, "SQL Support and Workarounds", "Limitations": statements for one
/// machine have no limits of syntax, except row locks, subqueries of insertions and functions in
/// written values.
enum ClusterRules {
  private static let distributed = Set(StorageTables.partitioned.map(\.name))
  private static let reference = Set(StorageTables.directory.map(\.name))
  private static let local = Set(StorageTables.local.map(\.name))

  static func check(_ sql: String) {
    // For a cluster this query has another form (`SQLDialect.rows`), which `ClusterReadTests`
    // checks.
    if sql.hasPrefix("SELECT found.* FROM unnest(") { return }
    if let refusal = refusal(of: sql) { Issue.record("\(refusal): \(sql)") }
  }

  /// Nil for a statement that is certain to run.
  static func refusal(of sql: String) -> String? {
    let words = sql.split { !$0.isLetter && !$0.isNumber && $0 != "_" && $0 != "$" }
      .map(String.init)
    let names = Set(words)
    if let word = forbidden.first(where: names.contains) { return "'\(word)' is not for it" }
    let touched = [distributed, reference, local].map { names.intersection($0) }
    let kinds = touched.filter { !$0.isEmpty }.count
    switch words.first ?? "" {
    case "BEGIN", "COMMIT", "ROLLBACK", "SET", "LISTEN": return nil
    case "CREATE", "DROP", "ALTER": return refusalOfDefinition(sql, touched[0])
    case "SELECT" where kinds == 0:
      return names.contains("FROM") && !sql.contains("FROM pg_advisory_xact_lock")
        ? "it reads from what the tables do not name" : nil
    case "INSERT", "UPDATE", "DELETE", "SELECT": break
    default: return "a kind of statement that nobody has looked at"
    }
    guard kinds == 1 else { return "it reaches into tables that are in different places" }
    if !touched[2].isEmpty { return nil }
    if sql.contains("(SELECT") || names.contains("JOIN") { return "a query inside another" }
    if words.first != "SELECT",
      sql.firstMatch(of: /\b(unnest|now|random|lower|coalesce|gen_random_uuid|nextval) *\(/) != nil
    {
      return "a function in what is written"
    }
    return touched[0].isEmpty ? nil : refusalOnPartitions(sql, words)
  }

  private static let forbidden = [
    "DECLARE", "FETCH", "SAVEPOINT", "COPY", "TRUNCATE", "LOCK", "WITH", "MERGE", "RETURNING",
    "SERIALIZABLE", "CONCURRENTLY", "TEMP", "TEMPORARY", "TABLESAMPLE", "RECURSIVE", "CURSOR",
  ]

  /// For tables that are distributed by the partition: it is one parameter, in each part of a
  /// union.
  private static func refusalOnPartitions(_ sql: String, _ words: [String]) -> String? {
    if words.first == "INSERT" {
      guard sql.contains("(partition, ") || sql.contains("(partition)") else {
        return "an insertion without its partition"
      }
      let sets = sql.split(separator: "DO UPDATE SET ").dropFirst()
      return sets.contains { $0.contains("partition =") } ? "a partition that changes" : nil
    }
    if sql.contains(/SET [^W]*\bpartition =/) { return "a partition that changes" }
    let sources = zip(words, words.dropFirst()).filter { word, name in
      ["FROM", "UPDATE"].contains(word) && distributed.contains(name)
    }
    let partitions = sql.matches(of: /\bpartition = (\$\d+)/).map { String($0.output.1) }
    guard Set(partitions).count == 1, partitions.count == sources.count else {
      return "not of one partition"
    }
    if sql.contains(" OR ") { return "a condition beside the partition" }
    let locks = sql.contains("FOR UPDATE") || sql.contains("FOR KEY SHARE")
    let isCombined = ["UNION", "GROUP", "DISTINCT"].contains { words.contains($0) }
    return locks && isCombined ? "a lock of rows that are combined" : nil
  }

  private static func refusalOfDefinition(_ sql: String, _ tables: Set<String>) -> String? {
    if sql.hasPrefix("CREATE TABLE") || sql.hasPrefix("DROP INDEX") { return nil }
    guard sql.contains(/^CREATE (UNIQUE )?INDEX/) else {
      return "a change of a table that nobody has looked at"
    }
    return tables.isEmpty || sql.contains("(partition") ? nil : "an index without the partition"
  }
}
