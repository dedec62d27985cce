import Foundation
import WatershedSQLite

extension SQLiteStore {
  package func fetch(_ request: RowFetch) throws -> RowFetchResult {
    noticeForeignCommitsBeforeReading()
    return try reading { connection, epoch in
      try fetch(request, from: connection, cachingAt: epoch)
    }
  }

  package func referenceList(_ request: RowFetch) throws -> ReferenceList {
    noticeForeignCommitsBeforeReading()
    return try reading { connection, _ in try readReferences(request, from: connection) }
  }

  /// The references of the rows that a fetch finds through a connection.
  func readReferences(
    _ request: RowFetch,
    from connection: StoreConnection
  ) throws -> ReferenceList {
    try translatingPredicates {
      var list = ReferenceList()
      let statement = try FetchStatement(store: self, request: request)
      if let keys = statement.keysOfWholeTable {
        let number = statement.entity.number
        try each(keys, on: connection) { row in
          list.append(RowReference(entityNumber: number, key: row.int64(0)))
        }
        return list
      }
      try each(statement.references(), on: connection) { row in
        list.append(
          RowReference(entityNumber: Int32(truncatingIfNeeded: row.int64(1)), key: row.int64(0))
        )
      }
      return list
    }
  }

  private func translatingPredicates<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let error as PredicateNotTranslatable {
      throw StoreError(
        .coreData,
        error.reason,
        remedy: "Fetch by stored properties, and filter by the others in memory.",
        cause: error
      )
    }
  }

  /// Runs the fetch on a connection; rows are inserted into the row cache if its epoch is given.
  func fetch(
    _ request: RowFetch,
    from connection: StoreConnection,
    cachingAt epoch: Int? = nil
  ) throws -> RowFetchResult {
    try translatingPredicates {
      let statement = try FetchStatement(store: self, request: request)
      switch request.kind {
      case .rows:
        let plan = statement.entity.plan(includingSubentities: request.includesSubentities)
        return .rows(try rows(statement.rows(), plan, on: connection, cachingAt: epoch))
      case .references:
        return .references(Array(try readReferences(request, from: connection)))
      case .count:
        var count = 0
        try each(statement.count(), on: connection) { count = Int($0.int64(0)) }
        return .count(count)
      case .dictionaries(let shape):
        let written = try DictionaryStatement(statement, shape: shape)
        var dictionaries: [[String: Any]] = []
        try each(written.sql, on: connection) { dictionaries.append(try written.dictionary($0)) }
        return .dictionaries(dictionaries)
      }
    }
  }

  /// Uses no closure per row: every fetch of objects runs this loop.
  private func rows(
    _ fragment: SQLFragment,
    _ plan: ReadPlan,
    on connection: StoreConnection,
    cachingAt epoch: Int?
  ) throws -> [Row] {
    let statement = try connection.connection.statement(fragment.sql)
    for (index, value) in fragment.bindings.enumerated() {
      RowCoding.bind(value, to: statement, at: index + 1)
    }
    defer {
      statement.reset()
      statement.clearBindings()
    }
    var rows: [Row] = []
    var cached = 0
    while try statement.step() {
      guard let row = try coding.row(statement, plan, connection.builder) else { continue }
      rows.append(row)
      if let epoch, rows.count <= Self.cachedRows, rows.count - cached == Self.cachePortion {
        cache.insert(rows[cached...], readAt: epoch)
        cached = rows.count
      }
    }
    if let epoch, rows.count <= Self.cachedRows { cache.insert(rows[cached...], readAt: epoch) }
    return rows
  }

  /// The most rows of one fetch that are cached; more would evict everything else from the cache.
  static let cachedRows = 8192
  /// Rows are inserted into the cache in portions, while they are still in the processor's cache.
  private static let cachePortion = 256

  private func each(
    _ fragment: SQLFragment,
    on connection: StoreConnection,
    _ body: (SQLiteStatement) throws -> Void
  ) throws {
    let statement = try connection.connection.statement(fragment.sql)
    for (index, value) in fragment.bindings.enumerated() {
      RowCoding.bind(value, to: statement, at: index + 1)
    }
    defer {
      statement.reset()
      statement.clearBindings()
    }
    while try statement.step() { try body(statement) }
  }
}
