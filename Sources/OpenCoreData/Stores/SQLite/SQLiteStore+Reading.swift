import Foundation
import WatershedSQLite

extension SQLiteStore {
  package func row(_ reference: RowReference) throws -> Row? {
    if let row = cache.row(reference) { return row }
    let epoch = cache.epoch
    // Who asks for a single row is often about to change it. Read by the writing connection, the
    // row's page is at hand when it is written; while somebody writes, a reader does not wait.
    let row =
      try tryWriter { try readRow(reference, from: $0) }
      ?? withReader { try readRow(reference, from: $0) }
    if let row { cache.insert([row], readAt: epoch) }
    return row
  }

  package func rows(_ references: [RowReference]) throws -> [RowReference: Row] {
    var found: [RowReference: Row] = [:]
    found.reserveCapacity(references.count)
    for row in try orderedRows(references) {
      if let row { found[row.reference] = row }
    }
    return found
  }

  package func orderedRows(_ references: [RowReference]) throws -> [Row?] {
    var rows = cache.rows(references)
    let unknown = rows.indices.filter { rows[$0] == nil }
    guard !unknown.isEmpty else { return rows }
    let epoch = cache.epoch
    let read = try withReader { try readRows(unknown.map { references[$0] }, from: $0) }
    cache.insert(read, readAt: epoch)
    if unknown.count == 1 {
      rows[unknown[0]] = read.first
      return rows
    }
    var places: [RowReference: Int] = [:]
    places.reserveCapacity(read.count)
    for (place, row) in read.enumerated() { places[row.reference] = place }
    for index in unknown { rows[index] = places[references[index]].map { read[$0] } }
    return rows
  }

  /// The row as a connection sees it; nil where it is gone.
  func readRow(_ reference: RowReference, from connection: StoreConnection) throws -> Row? {
    let entity = try table(of: reference)
    let statement = try connection.selectByKey(entity)
    statement.bind(reference.key, at: 1)
    defer { statement.reset() }
    guard try statement.step() else { return nil }
    return coding.row(statement, entity.plan, connection.builder)
  }

  func readRows(
    _ references: [RowReference],
    from connection: StoreConnection
  ) throws -> [Row] {
    var result: [Row] = []
    result.reserveCapacity(references.count)
    if references.count == 1 {
      return try readRow(references[0], from: connection).map { [$0] } ?? []
    }
    for (number, keys) in Self.grouped(references) {
      let entity = try table(of: RowReference(entityNumber: number, key: 0))
      for keys in KeyBatches(keys) {
        let statement = try connection.connection.statement(
          "SELECT \(entity.plan.selection) FROM \(entity.table) AS t0 "
            + "WHERE t0.Z_PK IN (\(keys.marks))"
        )
        keys.bind(to: statement)
        defer { statement.reset() }
        while try statement.step() {
          if let row = coding.row(statement, entity.plan, connection.builder) { result.append(row) }
        }
      }
    }
    return result
  }

  /// Keys by entity, entities in ascending order.
  static func grouped(_ references: [RowReference]) -> [(number: Int32, keys: [Int64])] {
    guard let first = references.first else { return [] }
    if references.allSatisfy({ $0.entityNumber == first.entityNumber }) {
      return [(first.entityNumber, references.map(\.key))]
    }
    return Dictionary(grouping: references, by: \.entityNumber)
      .sorted { $0.key < $1.key }
      .map { ($0.key, $0.value.map(\.key)) }
  }

  // MARK: Relationships

  package func destinations(
    of relationship: NSRelationshipDescription,
    from sources: [RowReference]
  ) throws -> [RowReference: [RowReference]] {
    try withReader { try readDestinations(of: relationship, from: sources, on: $0) }
  }

  package func members(
    of relationship: NSRelationshipDescription,
    at index: Int,
    from source: RowReference
  ) throws -> [RowMember] {
    if var known = cache.members(source, toMany: index) {
      if known.contains(where: { $0.row == nil }) { try fill(&known) }
      return known
    }
    let entity = try table(of: source)
    let epoch = cache.epoch
    var rows: [Row] = []
    var members = try withReader { connection -> [RowMember] in
      guard
        let query = try connection.members(
          of: relationship,
          at: index,
          from: entity,
          in: schema
        )
      else { return [] }
      let statement = query.statement
      statement.bind(source.key, at: 1)
      defer { statement.reset() }
      var members: [RowMember] = []
      while try statement.step() {
        if let plan = query.rowPlan {
          guard let row = coding.row(statement, plan, connection.builder) else { continue }
          rows.append(row)
          members.append(RowMember(reference: row.reference, row: row))
        } else {
          let entity = query.constantEntity ?? Int32(truncatingIfNeeded: statement.int64(2))
          let reference = RowReference(entityNumber: entity, key: statement.int64(1))
          members.append(RowMember(reference: reference, row: nil))
        }
      }
      return members
    }
    cache.insert(members, of: source, toMany: index, fresh: rows, readAt: epoch)
    if rows.isEmpty, !members.isEmpty { try fill(&members) }
    return members
  }

  /// Whoever asks for the members reads them next: one question instead of one for each.
  private func fill(_ members: inout [RowMember]) throws {
    let missing = members.indices.filter { members[$0].row == nil }
    let rows = try orderedRows(missing.map { members[$0].reference })
    for (index, row) in zip(missing, rows) { members[index].row = row }
  }

  func readDestinations(
    of relationship: NSRelationshipDescription,
    from sources: [RowReference],
    on connection: StoreConnection
  ) throws -> [RowReference: [RowReference]] {
    var result: [RowReference: [RowReference]] = [:]
    result.reserveCapacity(sources.count)
    for (number, keys) in Self.grouped(sources) {
      let source = try table(of: RowReference(entityNumber: number, key: 0))
      for batch in KeyBatches(keys) {
        guard
          let query = try connection.destinations(
            of: relationship,
            from: source,
            width: batch.width,
            marks: batch.marks,
            in: schema
          )
        else { break }
        let statement = query.statement
        batch.bind(to: statement)
        defer { statement.reset() }
        var current = RowReference(entityNumber: number, key: 0)
        var found: [RowReference] = []
        while try statement.step() {
          let key = statement.int64(0)
          if key != current.key {
            if !found.isEmpty { result[current, default: []] += found }
            found.removeAll(keepingCapacity: true)
            current.key = key
          }
          let entity =
            query.constantEntity ?? Int32(truncatingIfNeeded: statement.int64(2))
          found.append(RowReference(entityNumber: entity, key: statement.int64(1)))
        }
        if !found.isEmpty { result[current, default: []] += found }
      }
    }
    return result
  }
}

/// The query that follows a to-many from many sources at once, sorted by source and then by order.
struct DestinationQuery {
  /// The destinations' entity where there is only one.
  let constantEntity: Int32?
  /// What reads whole rows from one source, where the members' own columns hold the relationship.
  let rows: String?
  private let head: String
  private let tail: String

  /// Nil where nothing can be found: the destination is in another store.
  init?(
    _ relationship: NSRelationshipDescription,
    from source: EntityTable,
    in schema: StoreSchema
  ) {
    guard let link = source.link(of: relationship),
      let destination = relationship.destinationEntity.flatMap(schema.entity)
    else { return nil }
    constantEntity = destination.hasSubentities ? nil : destination.number
    switch link {
    case .absent:
      return nil
    case .foreignKey(let table, let column, let order, _):
      head = "SELECT t0.\(column), t0.Z_PK, t0.Z_ENT FROM \(table) AS t0 WHERE t0.\(column)"
      tail = Self.sort("t0.\(column)", order.map { "t0.\($0)" }, "t0.Z_PK")
      rows =
        "SELECT \(destination.plan.selection) FROM \(table) AS t0 WHERE t0.\(column) = ?" + tail
    case .join(let table, let from, let to, let order):
      rows = nil
      // The rows themselves are looked at only where their entity is not known.
      let entity = constantEntity == nil ? ", t0.Z_ENT" : ""
      let rows =
        constantEntity == nil ? " JOIN \(destination.table) AS t0 ON t0.Z_PK = j.\(to)" : ""
      head = "SELECT j.\(from), j.\(to)\(entity) FROM \(table) AS j\(rows) WHERE j.\(from)"
      tail = Self.sort("j.\(from)", order.map { "j.\($0)" }, "j.\(to)")
    }
  }

  func sql(marks: String) -> String {
    marks == "?" ? "\(head) = ?\(tail)" : "\(head) IN (\(marks))\(tail)"
  }

  /// Destinations without an order key, which another writer may have left, come last.
  private static func sort(_ source: String, _ order: String?, _ key: String) -> String {
    guard let order else { return " ORDER BY \(source), \(key)" }
    return " ORDER BY \(source), \(order) IS NULL, \(order), \(key)"
  }
}

/// Keys in portions of few sizes, so that few statements are compiled for any number of them.
struct KeyBatches: Sequence, IteratorProtocol {
  struct Batch {
    let keys: ArraySlice<Int64>
    let marks: String
    let width: Int

    /// Binds the keys; what is left of the statement's width repeats the last one.
    func bind(to statement: SQLiteStatement) {
      guard let last = keys.last else { return }
      var index = 1
      for key in keys {
        statement.bind(key, at: index)
        index += 1
      }
      while index <= width {
        statement.bind(last, at: index)
        index += 1
      }
    }
  }

  private static let widths: [(width: Int, marks: String)] = [1, 8, 64, 512].map { width in
    (width, Array(repeating: "?", count: width).joined(separator: ", "))
  }

  private let keys: [Int64]
  private var position = 0

  init(_ keys: [Int64]) {
    self.keys = keys
  }

  mutating func next() -> Batch? {
    guard position < keys.count else { return nil }
    let left = keys.count - position
    guard let fitting = Self.widths.first(where: { $0.width >= left }) ?? Self.widths.last else {
      return nil
    }
    let end = Swift.min(position + fitting.width, keys.count)
    defer { position = end }
    return Batch(keys: keys[position..<end], marks: fitting.marks, width: fitting.width)
  }
}
