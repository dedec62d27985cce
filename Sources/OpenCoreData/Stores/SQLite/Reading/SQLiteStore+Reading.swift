import Foundation
import WatershedSQLite

/// The source of a read's connection: the store lends one for each read, a context's session
/// keeps one for several.
protocol ReadSource {
  /// Whether one read transaction may serve several reads of the source.
  var isSession: Bool { get }

  /// Lends a connection, and an epoch of the row cache: no row that the connection reads is newer.
  func reading<Result>(_ body: (StoreConnection, Int) throws -> Result) throws -> Result
}

extension SQLiteStore: ReadSource {
  var isSession: Bool { false }

  func reading<Result>(_ body: (StoreConnection, Int) throws -> Result) throws -> Result {
    for _ in 1..<MissingLargeValue.attempts {
      do {
        return try withNewestReader { connection, epoch in
          try connection.requiringFiles { try body(connection, epoch) }
        }
      } catch is MissingLargeValue {
        continue
      }
    }
    return try withNewestReader(body)
  }

  private func withNewestReader<Result>(
    _ body: (StoreConnection, Int) throws -> Result
  ) throws -> Result {
    let epoch = cache.epoch
    return try withReader { connection in
      // Inside a write transaction, also that of a store in memory, the rows may be rolled back.
      try body(connection, connection.connection.isInTransaction ? RowCache.noEpoch : epoch)
    }
  }

  /// Whether a read finds the files of all its large values in the newest state.
  func findsFiles(_ body: (StoreConnection) throws -> Void) throws -> Bool {
    do {
      try withReader { connection in try connection.requiringFiles { try body(connection) } }
      return true
    } catch is MissingLargeValue {
      return false
    }
  }

  package func row(_ reference: RowReference) throws -> RowAnswer { try row(reference, by: self) }

  package func rows(_ references: [RowReference]) throws -> [RowReference: Row] {
    try rows(references, by: self)
  }

  package func rows(_ references: [RowReference], _ policy: RowReadPolicy) throws -> [Row?] {
    try rows(references, policy, by: self)
  }

  package func destinations(
    of relationship: NSRelationshipDescription,
    from sources: [RowReference]
  ) throws -> [RowReference: [RowReference]] {
    try reading { connection, _ in
      try readDestinations(of: relationship, from: sources, on: connection)
    }
  }

  package func destinationLists(
    of relationship: NSRelationshipDescription,
    from sources: [RowReference]
  ) throws -> DestinationLists {
    try reading { connection, _ in
      try readDestinationLists(of: relationship, from: sources, on: connection)
    }
  }

  package func destinationLists(
    of relationship: NSRelationshipDescription,
    from sources: [RowReference],
    bringing rows: RowBringing
  ) throws -> DestinationLists {
    try reading { connection, epoch in
      try readDestinationLists(
        of: relationship,
        from: sources,
        on: connection,
        bringing: rows,
        cachingAt: epoch
      )
    }
  }

  package func appendMembers(
    ofToMany index: Int,
    from source: RowReference,
    to members: inout [RowMember]
  ) throws {
    try appendMembers(ofToMany: index, from: source, to: &members, by: self)
  }
}

extension SQLiteStore {
  // MARK: Rows

  func row(_ reference: RowReference, by source: some ReadSource) throws -> RowAnswer {
    if let row = cache.row(reference) { return .row(row) }
    let epoch = cache.epoch
    // While another thread writes, a reader does not wait for it.
    if let answer = tryWriterRow(reference, inSession: source.isSession) {
      if case .row(let row) = answer { cache.insert(CollectionOfOne(row), readAt: epoch) }
      return answer
    }
    return try source.reading { connection, epoch in
      guard let row = try readRow(reference, from: connection) else { return .absent }
      cache.insert(CollectionOfOne(row), readAt: epoch)
      return .row(row)
    }
  }

  func rows(
    _ references: [RowReference],
    by source: some ReadSource
  ) throws -> [RowReference: Row] {
    var found: [RowReference: Row] = [:]
    found.reserveCapacity(references.count)
    for row in try rows(references, .cached, by: source) {
      if let row { found[row.reference] = row }
    }
    return found
  }

  func rows(
    _ references: [RowReference],
    _ policy: RowReadPolicy,
    by source: some ReadSource
  ) throws -> [Row?] {
    switch policy {
    case .cached: try orderedRows(references, by: source, isCaching: true)
    case .uncached: try orderedRows(references, by: source, isCaching: false)
    case .linksOnly: try linkRows(references, by: source)
    }
  }

  private func orderedRows(
    _ references: [RowReference],
    by source: some ReadSource,
    isCaching: Bool
  ) throws -> [Row?] {
    var rows = cache.rows(references)
    let unknown = rows.indices.filter { rows[$0] == nil }
    guard !unknown.isEmpty else { return rows }
    try source.reading { connection, epoch in
      let wanted = unknown.count == references.count ? references : unknown.map { references[$0] }
      var read: [Row] = []
      let isCached = isCaching && unknown.count <= Self.cachedRows
      if isCached { read.reserveCapacity(unknown.count) }
      try eachRow(wanted, from: connection) { place, row in
        rows[unknown[place]] = row
        if isCached { read.append(row) }
      }
      cache.insert(read, readAt: epoch)
    }
    return rows
  }

  /// Rows of which the attributes may be null; none of them is cached.
  private func linkRows(_ references: [RowReference], by source: some ReadSource) throws -> [Row?] {
    var rows = cache.rows(references)
    let unknown = rows.indices.filter { rows[$0] == nil }
    guard !unknown.isEmpty else { return rows }
    try source.reading { connection, _ in
      try eachRow(unknown.map { references[$0] }, \.linkPlan, from: connection) { place, row in
        rows[unknown[place]] = row
      }
    }
    return rows
  }

  /// The row as a connection reads it; nil where it was deleted.
  func readRow(_ reference: RowReference, from connection: StoreConnection) throws -> Row? {
    let entity = try table(of: reference)
    let statement = try connection.selectByKey(entity)
    statement.bind(reference.key, at: 1)
    defer { statement.reset() }
    guard try statement.step() else { return nil }
    return try coding.row(statement, entity.plan, connection.builder)
  }

  func readRows(
    _ references: [RowReference],
    from connection: StoreConnection
  ) throws -> [Row] {
    if references.count == 1 {
      return try readRow(references[0], from: connection).map { [$0] } ?? []
    }
    var result: [Row] = []
    result.reserveCapacity(references.count)
    try eachRow(references, from: connection) { _, row in result.append(row) }
    return result
  }

  /// Reads rows, and passes the body each row with the indexes at which it was asked for.
  private func eachRow(
    _ references: [RowReference],
    _ plan: KeyPath<EntityTable, ReadPlan> = \.plan,
    from connection: StoreConnection,
    _ body: (Int, Row) -> Void
  ) throws {
    for part in SortedReferences(references).parts {
      let entity = try table(of: RowReference(entityNumber: part.number, key: 0))
      let plan = entity[keyPath: plan]
      for span in KeySpans(part.keys) {
        let statement = try connection.connection.statement(
          "SELECT \(plan.selection) FROM \(entity.table) AS t0 WHERE t0.Z_PK "
            + span.condition
        )
        span.bind(to: statement)
        defer { statement.reset() }
        var cursor = span.cursor()
        while try statement.step() {
          let key = statement.int64(0)
          guard var index = cursor.find(key),
            let row = try coding.row(statement, plan, connection.builder)
          else { continue }
          while index < span.indices.upperBound, part.keys[index] == key {
            body(part.place(index), row)
            index += 1
          }
        }
      }
    }
  }

  // MARK: Relationships

  func appendMembers(
    ofToMany index: Int,
    from source: RowReference,
    to members: inout [RowMember],
    by reader: some ReadSource
  ) throws {
    let start = members.count
    switch cache.appendMembers(source, toMany: index, to: &members) {
    case .rows: return
    case .members: break
    case .nothing:
      let entity = try table(of: source)
      try reader.reading { connection, epoch in
        guard let query = try connection.members(at: index, from: entity, in: schema) else {
          return
        }
        // A repeated read begins again.
        members.removeSubrange(start...)
        try readMembers(query, from: source, on: connection, to: &members)
        cache.insert(&members, from: start, of: source, toMany: index, readAt: epoch)
      }
    }
    try fill(&members, from: start, by: reader)
  }

  func readMembers(
    _ query: StoreConnection.MembersStatement,
    from source: RowReference,
    on connection: StoreConnection,
    to members: inout [RowMember]
  ) throws {
    let statement = query.statement
    statement.bind(source.key, at: 1)
    defer { statement.reset() }
    while try statement.step() {
      if let plan = query.rowPlan {
        guard let row = try coding.row(statement, plan, connection.builder) else { continue }
        members.append(RowMember(reference: row.reference, row: row))
      } else {
        let entity = query.constantEntity ?? Int32(truncatingIfNeeded: statement.int64(2))
        let reference = RowReference(entityNumber: entity, key: statement.int64(1))
        members.append(RowMember(reference: reference, row: nil))
      }
    }
  }

  /// Reads the members' rows too, because the caller reads them next: one query instead of one for
  /// each.
  private func fill(
    _ members: inout [RowMember],
    from start: Int,
    by source: some ReadSource
  ) throws {
    guard members[start...].contains(where: { $0.row == nil }) else { return }
    let missing = (start..<members.count).filter { members[$0].row == nil }
    let rows = try orderedRows(
      missing.map { members[$0].reference },
      by: source,
      isCaching: true
    )
    for (index, row) in zip(missing, rows) { members[index].row = row }
  }

  func readDestinations(
    of relationship: NSRelationshipDescription,
    from sources: [RowReference],
    on connection: StoreConnection
  ) throws -> [RowReference: [RowReference]] {
    let lists = try readDestinationLists(of: relationship, from: sources, on: connection)
    var result: [RowReference: [RowReference]] = [:]
    result.reserveCapacity(sources.count)
    for (place, source) in sources.enumerated() {
      let found = lists.destinations(at: place)
      if !found.isEmpty { result[source] = Array(found) }
    }
    return result
  }

  /// Where a column of the destinations is the relationship, their rows are read too; they are
  /// cached only if the row cache still has the epoch.
  func readDestinationLists(
    of relationship: NSRelationshipDescription,
    from sources: [RowReference],
    on connection: StoreConnection,
    bringing rows: RowBringing = .none,
    cachingAt epoch: Int = 0
  ) throws -> DestinationLists {
    var lists = DestinationLists(sourceCount: sources.count)
    for part in SortedReferences(sources).parts {
      let source = try table(of: RowReference(entityNumber: part.number, key: 0))
      for span in KeySpans(part.keys) {
        guard
          let query = try connection.destinations(
            of: relationship,
            from: source,
            span,
            bringingRows: rows != .none,
            in: schema
          )
        else { break }
        span.bind(to: query.statement)
        defer { query.statement.reset() }
        try readList(query, span, part, connection.builder, &lists)
      }
      for index in part.keys.indices.dropFirst() where part.keys[index] == part.keys[index - 1] {
        lists.copy(from: part.place(index - 1), to: part.place(index))
      }
    }
    if rows == .cached, lists.hasRows, lists.rows.count <= Self.cachedRows {
      cache.insert(lists.rows, readAt: epoch)
    }
    return lists
  }

  /// The result is in the order of the sources, so the members of each are adjacent.
  private func readList(
    _ query: StoreConnection.DestinationStatement,
    _ span: KeySpan,
    _ part: SortedReferences.Part,
    _ builder: RowBuilder,
    _ lists: inout DestinationLists
  ) throws {
    let statement = query.statement
    var cursor = span.cursor()
    var current: (key: Int64, index: Int?)?
    var start = 0
    while try statement.step() {
      let key = statement.int64(query.sourceColumn)
      if key != current?.key {
        if let index = current?.index { lists.note(from: start, at: part.place(index)) }
        current = (key, cursor.find(key))
        start = lists.references.count
      }
      guard current?.index != nil else { continue }
      if let plan = query.rowPlan {
        if let row = try coding.row(statement, plan, builder) { lists.append(row) }
      } else {
        let entity = query.constantEntity ?? Int32(truncatingIfNeeded: statement.int64(2))
        lists.append(RowReference(entityNumber: entity, key: statement.int64(1)))
      }
    }
    if let index = current?.index { lists.note(from: start, at: part.place(index)) }
  }
}
