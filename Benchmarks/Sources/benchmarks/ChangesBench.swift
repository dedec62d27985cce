import CloudKitServer
import CloudKitWebServices
import Foundation
import WatershedPostgreSQL
import WatershedSQLite

/// `changes/zone` with 200 records, compared with the range read of the same rows and with copying
/// the reply.
///
/// The pages of a zone are read in order, as a new device does: the first without a token, each
/// later one with the token of the previous page.
struct ChangesBench {
  let room: BenchRoom
  var rounds = 301

  private static let pages = 20

  private struct ShortPage: Error {}

  static let title = ["engine", "records/s", "raw rows/s", "ratio", "by processor"]

  func run() async throws -> [String] {
    let bench = try await ServerBench(room, people: 1, indexes: 0)
    let person = bench.people[0]
    for number in 0..<Self.pages {
      _ = try await person.send(.modifyRecords, try ServerBench.batch(person: 0, number))
    }
    var requests: [Data] = []
    var token: String?
    var answer = Data()
    for _ in 0..<Self.pages {
      let options = ZoneChangesOptions(zoneID: ServerBench.zone, syncToken: token)
      let request = try WireCoding.encode(ZoneChangesRequest(zones: [options]))
      answer = try await person.send(.zoneChanges, request)
      let reply = try WireCoding.decode(ZoneChangesResponse.self, from: answer)
      let page = try reply.zones[0].get()
      guard page.records.count == ServerBench.batchSize else { throw ShortPage() }
      requests.append(request)
      token = page.syncToken
    }
    let served = try await measure { [requests] page in
      _ = try await person.send(.zoneChanges, requests[page])
    }
    let raw = try await measureRaw(copying: answer)
    await bench.service.shutdown()
    let count = Double(ServerBench.batchSize)
    return [
      room.engine.rawValue, "\(Int(count / served.time))", "\(Int(count / raw.time))",
      ratio(raw.time / served.time), ratio(raw.work / served.work),
    ]
  }

  /// The median of all rounds' times, and the mean of their processor time; the body receives the
  /// page.
  private func measure(
    _ body: (Int) async throws -> Void
  ) async rethrows -> (time: Double, work: Double) {
    // Each page twice, to warm caches.
    for page in 0..<2 * Self.pages { try await body(page % Self.pages) }
    var time = 0.0
    let whole = try await room.measure {
      var round = 0
      time = try await ServerBench.median(of: rounds) {
        try await body(round % Self.pages)
        round += 1
      }
    }
    return (time, whole.work / Double(rounds))
  }

  private func measureRaw(copying answer: Data) async throws -> (time: Double, work: Double) {
    var bytes = 0
    defer { precondition(bytes > 0) }
    func sql(_ partition: Int64, _ zone: Int64, _ page: Int) -> String {
      """
      SELECT name, type, tag, change, created_at, created_by, created_on, modified_at,
        modified_by, modified_on, parent, fields
      FROM records WHERE partition = \(partition) AND zone = \(zone) AND change > \(page * ServerBench.batchSize)
      ORDER BY change LIMIT \(ServerBench.batchSize)
      """
    }
    let place = "SELECT partition, zone FROM records WHERE type = 'Note' LIMIT 1"
    switch room.engine {
    case .sqlite:
      let connection = try ServerBench.sqlite(room.folder)
      let found = try connection.query(place) { ($0.int64(0), $0.int64(1)) }.first ?? (0, 0)
      return try await measure { page in
        let rows = try connection.query(sql(found.0, found.1, page)) { row in
          let numbers = [3, 4, 7].reduce(0) { $0 &+ row.int64($1) }
          let texts = [0, 1, 2, 5, 6, 8, 9, 10].map { row.text($0) }
          return Int(truncatingIfNeeded: numbers) + texts.count + row.blob(11).count
        }
        bytes = rows.reduce(Data(Array(answer)).count, &+)
      }
    case .postgreSQL:
      let connection = try PostgreSQLConnection(url: room.database ?? "")
      let row = try connection.query(place)[0]
      let found = (row.int64(0), row.int64(1))
      return try await measure { page in
        let rows = try connection.query(sql(found.0, found.1, page))
        bytes = (0..<rows.count).reduce(Data(Array(answer)).count) { sum, index in
          let row = rows[index]
          let numbers = [3, 4, 7].reduce(0) { $0 &+ row.int64($1) }
          let texts = [0, 1, 2, 5, 6, 8, 9, 10].map { row.text($0) }
          return sum &+ Int(truncatingIfNeeded: numbers) &+ texts.count &+ row.blob(11).count
        }
      }
    }
  }
}
