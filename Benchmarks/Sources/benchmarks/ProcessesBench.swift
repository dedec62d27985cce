import CloudKitServer
import CloudKitWebServices
import Foundation
import PostgreSQLServer

/// One server process and two on one PostgreSQL, with separate users' databases.
///
/// The processes are instances of this program, each with five clients inside. On a machine with
/// two processors for servers, clients and PostgreSQL the elapsed time says little: the processor
/// time of a request shows whether two processes contend.
struct ProcessesBench {
  let room: BenchRoom
  var batches = 10

  static let title = ["processes", "records/s", "against one", "processor ms a request"]
  static let clients = 5

  func run() async throws -> [[String]] {
    guard let database = room.database else { return [] }
    let bench = try await ServerBench(room, people: 2 * Self.clients, indexes: 3)
    var rows: [[String]] = []
    var alone = 0.0
    for count in [1, 2] {
      let shares = (0..<count).map { bench.people[($0 * Self.clients)..<(($0 + 1) * Self.clients)] }
      let measured = try await room.measure {
        try await withThrowingTaskGroup(of: Void.self) { group in
          for people in shares {
            let arguments = ["server-clients", database, "\(count)", "\(batches)"]
            let tokens = people.flatMap { ["\($0.number)", $0.apiToken, $0.webAuthToken] }
            group.addTask { let _: Int = try inProcess(arguments + tokens) }
          }
          try await group.waitForAll()
        }
      }
      let requests = Double(count * Self.clients * batches)
      let rate = requests * Double(ServerBench.batchSize) / measured.time
      if count == 1 { alone = rate }
      rows.append([
        "\(count)", "\(Int(rate))", ratio(rate / alone),
        String(format: "%.1f", measured.work / requests * 1000),
      ])
    }
    await bench.service.shutdown()
    return rows
  }

  /// The child process with a server and its clients: `URL ROUND BATCHES (NUMBER API-TOKEN
  /// WEB-TOKEN)…`; it returns the number of requests.
  static func serveClients(_ arguments: [String]) async throws -> Int {
    guard arguments.count >= 3, let round = Int(arguments[1]), let batches = Int(arguments[2])
    else { return 0 }
    let service = try CloudKitService(ServiceConfiguration(database: arguments[0]))
    let tokens = Array(arguments.dropFirst(3))
    try await withThrowingTaskGroup(of: Void.self) { group in
      for start in stride(from: 0, to: tokens.count - 2, by: 3) {
        let person = ServerBench.Person(
          service: service,
          apiToken: tokens[start + 1],
          webAuthToken: tokens[start + 2],
          number: Int(tokens[start]) ?? 0
        )
        group.addTask {
          for number in 0..<batches {
            let body = try ServerBench.batch(person: person.number, round * 1000 + number)
            _ = try await person.send(.modifyRecords, body)
          }
        }
      }
      try await group.waitForAll()
    }
    await service.shutdown()
    return tokens.count / 3 * batches
  }
}
