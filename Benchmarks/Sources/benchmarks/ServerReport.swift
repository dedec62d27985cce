import Foundation
import PostgreSQLServer

/// The cost of the service compared with its storage engine, and how it grows with the database.
///
/// `server` alone runs all parts; parts can be named: `server modify changes`. `--rows` sets the
/// number of records in the large database of `growth`.
struct ServerReport {
  enum Part: String, CaseIterable {
    case modify, changes, growth, processes, listeners
  }

  let parts: [Part]
  /// The number of records in the large database of `growth`.
  let rows: Int

  func run() async throws {
    let server = try? PostgreSQLServer(isDurable: true)
    defer { server?.stop() }
    for part in parts {
      switch part {
      case .modify:
        print("records/modify, \(ServerBench.batchSize) records a request, ten clients:\n")
        print(serverRow(ModifyBench.title))
        for engine in ServerEngine.allCases {
          for indexes in [0, 3, 8] {
            try await BenchRoom.open(engine, server) { room in
              print(serverRow(try await ModifyBench(room: room, indexes: indexes).run()))
            }
          }
        }
      case .changes:
        print("changes/zone, a page of \(ServerBench.batchSize):\n")
        print(serverRow(ChangesBench.title))
        for engine in ServerEngine.allCases {
          try await BenchRoom.open(engine, server) { room in
            print(serverRow(try await ChangesBench(room: room).run()))
          }
        }
      case .growth:
        print("The same request at 10,000 and at \(rows) records:\n")
        print(serverRow(GrowthBench.title))
        for engine in ServerEngine.allCases {
          try await BenchRoom.open(engine, server) { room in
            for cells in try await GrowthBench(room: room, rows: rows).run() {
              print(serverRow(cells))
            }
          }
        }
      case .processes:
        print("Server processes on one PostgreSQL, five clients each, 3 indexed fields:\n")
        print(serverRow(ProcessesBench.title))
        try await BenchRoom.open(.postgreSQL, server) { room in
          for cells in try await ProcessesBench(room: room).run() { print(serverRow(cells)) }
        }
      case .listeners:
        print("From a request to the listener it concerns, others waiting:\n")
        print(serverRow(ListenersBench.title))
        for engine in ServerEngine.allCases {
          try await BenchRoom.open(engine, server) { room in
            print(serverRow(try await ListenersBench(room: room).run()))
          }
        }
      }
      print("\nPeak memory of this process so far: \(peakMegabytes()) MB.\n")
    }
  }
}

/// A line of a report on the server.
func serverRow(_ cells: [String]) -> String {
  cells.map { $0.padding(toLength: max($0.count + 1, 17), withPad: " ", startingAt: 0) }.joined()
}
