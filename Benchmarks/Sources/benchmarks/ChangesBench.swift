import CloudKitServer
import CloudKitWebServices
import Foundation
import WatershedPostgreSQL
import WatershedSQLite

/// `changes/zone` of 200 records, beside the range read of the same rows and a copy of the answer.
struct ChangesBench {
  let room: BenchRoom
  var rounds = 301

  static let title = ["engine", "records/s", "raw rows/s", "ratio", "by processor"]

  func run() async throws -> [String] {
    let bench = try await ServerBench(room, people: 1, indexes: 0)
    let person = bench.people[0]
    for number in 0..<20 {
      _ = try await person.send(.modifyRecords, try ServerBench.batch(person: 0, number))
    }
    let request = try WireCoding.encode(
      ZoneChangesRequest(zones: [ZoneChangesOptions(zoneID: ServerBench.zone)])
    )
    let answer = try await person.send(.zoneChanges, request)
    let served = try await measure { _ = try await person.send(.zoneChanges, request) }
    let raw = try await measureRaw(copying: answer)
    await bench.service.shutdown()
    let count = Double(ServerBench.batchSize)
    return [
      room.engine.rawValue, "\(Int(count / served.time))", "\(Int(count / raw.time))",
      ratio(raw.time / served.time), ratio(raw.work / served.work),
    ]
  }

  /// The middle of all rounds' times, and the mean of their work.
  private func measure(
    _ body: () async throws -> Void
  ) async rethrows -> (time: Double, work: Double) {
    for _ in 0..<20 { try await body() }
    var time = 0.0
    let whole = try await room.measure {
      time = try await ServerBench.median(of: rounds, body)
    }
    return (time, whole.work / Double(rounds))
  }

  private func measureRaw(copying answer: Data) async throws -> (time: Double, work: Double) {
    var bytes = 0
    defer { precondition(bytes > 0) }
    func sql(_ partition: Int64, _ zone: Int64) -> String {
      """
      SELECT name, type, tag, change, created_at, created_by, created_on, modified_at,
        modified_by, modified_on, parent, fields
      FROM records WHERE partition = \(partition) AND zone = \(zone) AND change > 0
      ORDER BY change LIMIT \(ServerBench.batchSize)
      """
    }
    let place = "SELECT partition, zone FROM records WHERE type = 'Note' LIMIT 1"
    switch room.engine {
    case .sqlite:
      let connection = try ServerBench.sqlite(room.folder)
      let found = try connection.query(place) { ($0.int64(0), $0.int64(1)) }.first ?? (0, 0)
      return try await measure {
        let rows = try connection.query(sql(found.0, found.1)) { row in
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
      return try await measure {
        let rows = try connection.query(sql(found.0, found.1))
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
