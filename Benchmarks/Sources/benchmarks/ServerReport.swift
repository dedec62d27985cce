import CloudKitServer
import CloudKitWebServices
import Foundation
import PostgreSQLServer
import WatershedPostgreSQL
import WatershedSQLite

/// What the service costs beside the engine below it: batches of records and pages of changes, and
/// the same at ten thousand and at a million records.
struct ServerReport {
  /// Of the large database.
  let rows: Int

  private static let clients = 10
  private static let batches = 10
  private static let fewRows = 10_000

  func run() async throws {
    let server = try? PostgreSQLServer(isDurable: true)
    defer { server?.stop() }
    print("records/modify, \(ServerBench.batchSize) records a request, \(Self.clients) clients:\n")
    print(line(["engine", "indexes", "records/s", "raw rows/s", "ratio"]))
    for engine in ServerEngine.allCases {
      for indexes in [0, 3, 8] {
        try await inPlace(engine, server) { folder, url in
          try await modify(engine, folder, url, indexes)
        }
      }
    }
    print("\nchanges/zone, a page of \(ServerBench.batchSize):\n")
    print(line(["engine", "records/s", "raw rows/s", "ratio"]))
    for engine in ServerEngine.allCases {
      try await inPlace(engine, server) { folder, url in try await changes(engine, folder, url) }
    }
    print("\nThe same request at \(Self.fewRows) and at \(rows) records, in microseconds:\n")
    print(line(["engine", "request", "few", "many", "ratio"]))
    for engine in ServerEngine.allCases {
      try await inPlace(engine, server) { folder, url in try await growth(engine, folder, url) }
    }
    print("\nPeak memory of the process: \(peakMegabytes()) MB.\n")
  }

  private func inPlace(
    _ engine: ServerEngine,
    _ server: PostgreSQLServer?,
    _ body: (_ folder: URL, _ database: String?) async throws -> Void
  ) async throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("watershed-benchmark-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    switch engine {
    case .sqlite: try await body(folder, nil)
    case .postgreSQL:
      guard let server else {
        print("PostgreSQL is not installed.")
        return
      }
      let schema = server.freshSchema()
      let connection = try PostgreSQLConnection(url: server.url)
      try connection.execute("CREATE SCHEMA \(schema)")
      try await body(folder, server.url(schema: schema))
      try connection.execute("DROP SCHEMA \(schema) CASCADE")
    }
  }

  // MARK: records/modify

  private func modify(
    _ engine: ServerEngine,
    _ folder: URL,
    _ url: String?,
    _ indexes: Int
  ) async throws {
    let bench = try await ServerBench(
      folder: folder,
      database: url,
      people: Self.clients,
      indexes: indexes
    )
    let bodies = try bench.people.map { person in
      try (0..<Self.batches).map { try ServerBench.batch(person: person.number, $0) }
    }
    let taken = try await ServerBench.seconds {
      try await withThrowingTaskGroup(of: Void.self) { group in
        for (person, bodies) in zip(bench.people, bodies) {
          group.addTask {
            for body in bodies { _ = try await person.send(.modifyRecords, body) }
          }
        }
        try await group.waitForAll()
      }
    }
    await bench.service.shutdown()
    let raw = try await rawSeconds(engine, folder, url, indexes)
    let count = Double(Self.clients * Self.batches * ServerBench.batchSize)
    print(
      line([
        engine.rawValue, "\(indexes)", number(count / taken), number(count / raw),
        String(format: "%.2f", raw / taken),
      ])
    )
  }

  /// The same number of rows, beside those that the service wrote.
  private func rawSeconds(
    _ engine: ServerEngine,
    _ folder: URL,
    _ url: String?,
    _ indexes: Int
  ) async throws -> Double {
    let batches = Self.clients * Self.batches
    let names = (0..<batches).map { batch in
      (0..<ServerBench.batchSize).map {
        ServerBench.name(UInt64(batch) << 32 ^ UInt64($0) ^ 0xABCD_0000_0000)
      }
    }
    func partition(_ batch: Int) -> Int64 { 1000 + Int64(batch % Self.clients) }
    func change(_ batch: Int) -> Int64 { Int64(batch / Self.clients * ServerBench.batchSize) }
    switch engine {
    case .sqlite:
      let path = folder.appendingPathComponent("watershed.sqlite").path
      let connection = try SQLiteConnection(path: path)
      try connection.execute("PRAGMA synchronous = FULL")
      let sample = try connection.scalar("SELECT fields FROM records WHERE type = 'Note' LIMIT 1")
      guard case .blob(let fields)? = sample else { return 0 }
      let raw = RawRows(fields: fields, indexes: indexes)
      return try await ServerBench.seconds {
        for batch in 0..<batches {
          try raw.writeSQLite(
            connection,
            partition: partition(batch),
            change: change(batch),
            names: names[batch]
          )
        }
      }
    case .postgreSQL:
      let pool = PostgreSQLPool(url: url ?? "")
      let fields = try pool.use {
        try $0.query("SELECT fields FROM records WHERE type = 'Note' LIMIT 1")[0].blob(0)
      }
      let raw = RawRows(fields: fields, indexes: indexes)
      return try await ServerBench.seconds {
        try await withThrowingTaskGroup(of: Void.self) { group in
          for client in 0..<Self.clients {
            group.addTask {
              for round in 0..<Self.batches {
                let batch = round * Self.clients + client
                try pool.use {
                  try raw.writePostgreSQL(
                    $0,
                    partition: 1000 + Int64(client),
                    change: Int64(round * ServerBench.batchSize),
                    names: names[batch]
                  )
                }
              }
            }
          }
          try await group.waitForAll()
        }
      }
    }
  }

  // MARK: changes/zone

  private func changes(_ engine: ServerEngine, _ folder: URL, _ url: String?) async throws {
    let bench = try await ServerBench(folder: folder, database: url, people: 1, indexes: 0)
    let person = bench.people[0]
    for number in 0..<20 {
      _ = try await person.send(.modifyRecords, try ServerBench.batch(person: 0, number))
    }
    let request = try WireCoding.encode(
      ZoneChangesRequest(zones: [ZoneChangesOptions(zoneID: ServerBench.zone)])
    )
    let answer = try await person.send(.zoneChanges, request)
    let served = try await ServerBench.median(of: 101) {
      _ = try await person.send(.zoneChanges, request)
    }
    let raw = try await rawRead(engine, folder, url, copying: answer)
    await bench.service.shutdown()
    let count = Double(ServerBench.batchSize)
    print(
      line([
        engine.rawValue, number(count / served), number(count / raw),
        String(format: "%.2f", raw / served),
      ])
    )
  }

  /// The range read of the same rows, every column taken, and a copy of the answer's bytes.
  private func rawRead(
    _ engine: ServerEngine,
    _ folder: URL,
    _ url: String?,
    copying answer: Data
  ) async throws -> Double {
    let columns = """
      name, type, tag, change, created_at, created_by, created_on, modified_at, modified_by,
      modified_on, parent, fields
      """
    func sql(_ partition: Int64) -> String {
      """
      SELECT \(columns) FROM records
      WHERE partition = \(partition) AND zone = 1 AND change > 0 ORDER BY change
      LIMIT \(ServerBench.batchSize)
      """
    }
    let owner = "SELECT partition FROM records WHERE type = 'Note' LIMIT 1"
    var bytes = 0
    let result: Double
    switch engine {
    case .sqlite:
      let path = folder.appendingPathComponent("watershed.sqlite").path
      let connection = try SQLiteConnection(path: path, mode: .readOnly)
      let partition = try connection.query(owner) { $0.int64(0) }.first ?? 0
      result = try await ServerBench.median(of: 101) {
        let rows = try connection.query(sql(partition)) { row in
          (0..<11).map { row.text($0) } + [String(row.blob(11).count)]
        }
        bytes += rows.count + [UInt8](answer).count
      }
    case .postgreSQL:
      let connection = try PostgreSQLConnection(url: url ?? "")
      let partition = try connection.query(owner)[0].int64(0)
      result = try await ServerBench.median(of: 101) {
        let rows = try connection.query(sql(partition))
        let texts = (0..<rows.count).map { index in
          [0, 1, 2, 5, 6, 8, 9, 10].map { rows[index].text($0) }
            + [3, 4, 7].map { String(rows[index].int64($0)) }
            + [String(rows[index].blob(11).count)]
        }
        bytes += texts.count + [UInt8](answer).count
      }
    }
    precondition(bytes > 0)
    return result
  }

  // MARK: Growth

  private func growth(_ engine: ServerEngine, _ folder: URL, _ url: String?) async throws {
    let bench = try await ServerBench(folder: folder, database: url, people: 2, indexes: 1)
    var costs: [[Double]] = []
    for (person, count) in zip(bench.people, [Self.fewRows, rows]) {
      for number in 0..<(count / ServerBench.batchSize) {
        _ = try await person.send(
          .modifyRecords,
          try ServerBench.batch(person: person.number, number)
        )
      }
      costs.append(try await costsOfRequests(person, count))
    }
    await bench.service.shutdown()
    for (index, name) in ["last 10 changes", "lookup", "indexed query"].enumerated() {
      let (few, many) = (costs[0][index], costs[1][index])
      print(
        line([
          engine.rawValue, name, number(few * 1e6), number(many * 1e6),
          String(format: "%.2f", many / few),
        ])
      )
    }
  }

  private func costsOfRequests(_ person: ServerBench.Person, _ count: Int) async throws -> [Double]
  {
    let seed = UInt64(bitPattern: Int64(person.number << 40 ^ 3 << 12 ^ 5))
    let lookup = try WireCoding.encode(
      LookupRecordsRequest(
        records: [LookupRecord(recordName: ServerBench.name(seed))],
        zoneID: ServerBench.zone
      )
    )
    let found = try WireCoding.decode(
      RecordsResponse.self,
      from: try await person.send(.lookupRecords, lookup)
    ).records[0].get()
    guard case .string(let text)? = found.fields?[ServerBench.fieldNames[0]]?.content else {
      return []
    }
    let query = try WireCoding.encode(ServerBench.query(ServerBench.fieldNames[0], equals: text))
    let recent = try await tokenBeforeLast(10, person)
    let changes = try WireCoding.encode(
      ZoneChangesRequest(zones: [ZoneChangesOptions(zoneID: ServerBench.zone, syncToken: recent)])
    )
    var costs: [Double] = []
    for (endpoint, body) in [
      (Endpoint.zoneChanges, changes), (.lookupRecords, lookup), (.queryRecords, query),
    ] {
      costs.append(
        try await ServerBench.median(of: 201) { _ = try await person.send(endpoint, body) }
      )
    }
    return costs
  }

  /// A token, and then so many records more.
  private func tokenBeforeLast(_ count: Int, _ person: ServerBench.Person) async throws -> String {
    let reply = try WireCoding.decode(
      ZonesResponse.self,
      from: try await person.send(.listZones, Data("{}".utf8))
    )
    let zones = reply.zones.compactMap(\.item)
    let token = zones.first { $0.zoneID.zoneName == ServerBench.zone.zoneName }?.syncToken ?? ""
    _ = try await person.send(
      .modifyRecords,
      try ServerBench.batch(person: person.number, 1_000_000, count)
    )
    return token
  }

  // MARK: Printing

  private func line(_ cells: [String]) -> String {
    cells.map { $0.padding(toLength: 16, withPad: " ", startingAt: 0) }.joined()
  }

  private func number(_ value: Double) -> String { String(Int(value.rounded())) }
}
