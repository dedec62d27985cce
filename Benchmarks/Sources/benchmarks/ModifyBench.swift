import CloudKitServer
import Foundation
import WatershedPostgreSQL
import WatershedSQLite

/// `records/modify` of 200 records by ten clients, beside the engine itself writing the same rows.
struct ModifyBench {
  let room: BenchRoom
  let indexes: Int
  var batches = 10

  private static let clients = 10

  static let title = ["engine", "indexes", "records/s", "raw rows/s", "ratio", "by processor"]

  func run() async throws -> [String] {
    let bench = try await ServerBench(room, people: Self.clients, indexes: indexes)
    let bodies = try bench.people.map { person in
      try (0..<batches).map { try ServerBench.batch(person: person.number, $0) }
    }
    let served = try await room.measure {
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
    let raw = try await writeRaw()
    let count = Double(Self.clients * batches * ServerBench.batchSize)
    return [
      room.engine.rawValue, "\(indexes)", "\(Int(count / served.time))",
      "\(Int(count / raw.time))", ratio(raw.time / served.time), ratio(raw.work / served.work),
    ]
  }

  /// The same number of rows, beside those that the service wrote.
  private func writeRaw() async throws -> (time: Double, work: Double) {
    switch room.engine {
    case .sqlite:
      // One connection: SQLite has one writer.
      let connection = try ServerBench.sqlite(room.folder)
      let fields = try connection.query(Self.sample) { $0.blob(0) }
      let raw = RawRows(fields: fields.first ?? Data(), indexes: indexes)
      return try await room.measure {
        for round in 0..<batches {
          for client in 0..<Self.clients {
            try raw.writeSQLite(
              connection,
              partition: Self.partition(client),
              change: Int64(round * ServerBench.batchSize),
              names: Self.names(client, round)
            )
          }
        }
      }
    case .postgreSQL:
      let pool = PostgreSQLPool(url: room.database ?? "")
      let fields = try pool.use { try $0.query(Self.sample)[0].blob(0) }
      let raw = RawRows(fields: fields, indexes: indexes)
      return try await room.measure {
        try await withThrowingTaskGroup(of: Void.self) { group in
          for client in 0..<Self.clients {
            group.addTask {
              for round in 0..<batches {
                try pool.use {
                  try raw.writePostgreSQL(
                    $0,
                    partition: Self.partition(client),
                    change: Int64(round * ServerBench.batchSize),
                    names: Self.names(client, round)
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

  private static let sample = "SELECT fields FROM records WHERE type = 'Note' LIMIT 1"

  private static func partition(_ client: Int) -> Int64 { 1000 + Int64(client) }

  private static func names(_ client: Int, _ round: Int) -> [String] {
    let batch = UInt64(round * clients + client)
    return (0..<ServerBench.batchSize).map {
      ServerBench.name(batch << 32 ^ UInt64($0) ^ 0xABCD_0000_0000)
    }
  }
}
