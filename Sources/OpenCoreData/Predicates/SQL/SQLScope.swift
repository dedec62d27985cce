/// A FROM clause under construction: key paths add joins.
final class SQLScope {
  /// Generates the table aliases of one statement, `t1`, `t2` ….
  final class Aliases {
    private var next = 1

    func make() -> String {
      defer { next += 1 }
      return "t\(next)"
    }
  }

  let aliases: Aliases
  private(set) var joins: [String] = []
  private var known: [String: SQLNode] = [:]

  init(aliases: Aliases) {
    self.aliases = aliases
  }

  /// The row at the end of a to-one.
  ///
  /// It is joined once, even if several key paths use it.
  func join(_ node: SQLNode, toOne column: String, _ entity: String, _ table: String) -> SQLNode {
    let link = "\(node.alias).\(column)"
    if let joined = known[link] { return joined }
    let joined = SQLNode(scope: self, alias: aliases.make(), entity: entity)
    joins.append(" LEFT OUTER JOIN \(table) \(joined.alias) ON \(joined.alias).Z_PK = \(link)")
    known[link] = joined
    return joined
  }

  func add(_ join: String) {
    joins.append(join)
  }
}

/// A row that key paths can start from.
struct SQLNode {
  let scope: SQLScope
  let alias: String
  let entity: String
}
