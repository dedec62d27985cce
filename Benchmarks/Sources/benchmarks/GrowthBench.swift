import CloudKitServer
import CloudKitWebServices
import Foundation

/// Compares the same requests to a database of ten thousand records and to a larger one.
struct GrowthBench {
  let room: BenchRoom
  let rows: Int

  static let title = ["engine", "request", "10,000 (µs)", "many (µs)", "ratio"]
  private static let requests = ["last 10 changes", "lookup", "indexed query"]

  func run() async throws -> [[String]] {
    let bench = try await ServerBench(room, people: 2, indexes: 1)
    for (person, count) in zip(bench.people, [10_000, rows]) {
      for number in 0..<(count / ServerBench.batchSize) {
        _ = try await person.send(
          .modifyRecords,
          try ServerBench.batch(person: person.number, number)
        )
      }
    }
    let few = try await costs(bench.people[0])
    let many = try await costs(bench.people[1])
    await bench.service.shutdown()
    return Self.requests.indices.map { index in
      [
        room.engine.rawValue, Self.requests[index], "\(Int(few[index] * 1e6))",
        "\(Int(many[index] * 1e6))", ratio(many[index] / few[index]),
      ]
    }
  }

  private func costs(_ person: ServerBench.Person) async throws -> [Double] {
    let seed = ServerBench.seed(person: person.number, batch: 3, index: 5)
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
        try await ServerBench.median(of: 301) { _ = try await person.send(endpoint, body) }
      )
    }
    return costs
  }

  /// A change token that is followed by `count` more records.
  private func tokenBeforeLast(_ count: Int, _ person: ServerBench.Person) async throws -> String {
    let reply = try WireCoding.decode(
      ZonesResponse.self,
      from: try await person.send(.listZones, Data("{}".utf8))
    )
    let zones = reply.zones.compactMap(\.item)
    let token = zones.first { $0.zoneID.zoneName == ServerBench.zone.zoneName }?.syncToken ?? ""
    _ = try await person.send(
      .modifyRecords,
      try ServerBench.batch(person: person.number, 500_000, count)
    )
    return token
  }
}
