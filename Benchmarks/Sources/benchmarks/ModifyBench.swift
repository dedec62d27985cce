import CloudKitServer
import Effects
import Foundation
import WatershedPostgreSQL
import WatershedSQLite

/// `records/modify` with 200 records by ten clients, compared with writing the same rows to the
/// engine directly.
///
/// Both alternate, and the least of each is used: other work on the machine only adds time.
struct ModifyBench {
  let room: BenchRoom
  let indexes: Int
  var batches = 10
  var rounds = 3

  private static let clients = 10

  static let title = ["engine", "indexes", "records/s", "raw rows/s", "ratio", "by processor"]

  func run() async throws -> [String] {
    let bench = try await ServerBench(room, people: Self.clients, indexes: indexes)
    var served = Measure.most
    var raw = Measure.most
    for round in 0..<rounds {
      served = served.least(try await serve(bench, round))
      raw = raw.least(try await writeRaw(round))
    }
    await bench.service.shutdown()
    let count = Double(Self.clients * batches * ServerBench.batchSize)
    return [
      room.engine.rawValue, "\(indexes)", "\(Int(count / served.time))",
      "\(Int(count / raw.time))", ratio(raw.time / served.time), ratio(raw.work / served.work),
    ]
  }

  /// Elapsed and processor seconds.
  struct Measure {
    var time: Double
    var work: Double

    static let most = Measure(time: .infinity, work: .infinity)

    func least(_ other: Measure) -> Measure {
      Measure(time: min(time, other.time), work: min(work, other.work))
    }
  }

  private func measure(_ body: () async throws -> Void) async rethrows -> Measure {
    let found = try await room.measure(body)
    return Measure(time: found.time, work: found.work)
  }

  func serve(_ bench: ServerBench, _ round: Int) async throws -> Measure {
    let bodies = try bench.people.map { person in
      try (0..<batches).map { try ServerBench.batch(person: person.number, round * batches + $0) }
    }
    return try await measure {
      try await withThrowingTaskGroup(of: Void.self) { group in
        for (person, bodies) in zip(bench.people, bodies) {
          group.addTask {
            for body in bodies { _ = try await person.send(.modifyRecords, body) }
          }
        }
        try await group.waitForAll()
      }
    }
  }

  /// Writes as many rows as the service wrote.
  func writeRaw(_ round: Int) async throws -> Measure {
    let rounds = round * batches..<(round + 1) * batches
    switch room.engine {
    case .sqlite:
      // One connection: SQLite has one writer.
      let connection = try ServerBench.sqlite(room.folder)
      let fields = try connection.query(Self.sample) { $0.blob(0) }
      let raw = RawRows(fields: fields.first ?? Data(), indexes: indexes)
      return try await measure {
        for round in rounds {
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
      // One thread for each client, so that all ten wait for the disk concurrently.
      return try await measure {
        try await withThrowingTaskGroup(of: Void.self) { group in
          for client in 0..<Self.clients {
            group.addTask {
              try await Effects.live.waitingLane("client \(client)").run {
                for round in rounds {
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
          }
          try await group.waitForAll()
        }
      }
    }
  }

  private static let sample = "SELECT fields FROM records WHERE type = 'Note' LIMIT 1"

  /// Partition numbers as large as the service's own, which are random.
  private static func partition(_ client: Int) -> Int64 { 1 << 46 + Int64(client) }

  private static func names(_ client: Int, _ round: Int) -> [String] {
    let batch = UInt64(round * clients + client)
    return (0..<ServerBench.batchSize).map {
      ServerBench.name(batch << 32 ^ UInt64($0) ^ 0xABCD_0000_0000)
    }
  }
}
