import CloudKitWebServices
import Effects
import Foundation
import PostgreSQLServer
import Synchronization
import Testing

@testable import CloudKitServer

@Suite(
  "Several servers on one PostgreSQL",
  .enabled(if: PostgreSQLServer.shared != nil, "PostgreSQL is not installed")
)
struct SeveralServersTests {
  private func servers(
    _ count: Int,
    _ body: @Sendable ([TestServer], _ url: String) async throws -> Void
  ) async throws {
    try await TestEngine.run(with: .postgreSQL) {
      try await withTemporaryFolder { folder in
        var servers: [TestServer] = []
        for seed in 1...count {
          servers.append(try await TestServer(folder: folder, seed: UInt64(seed)))
        }
        try await body(servers, try #require(TestEngine.knownURL(for: folder)))
        for server in servers { await server.service.shutdown() }
      }
    }
  }

  @Test("A change that one server acknowledged is visible in every other at once")
  func shared() async throws {
    try await servers(2) { servers, _ in
      let here = try await servers[0].person()
      var there = here
      there.server = servers[1]
      try await here.makeZone()
      let token = try await there.changes().syncToken
      for index in 0..<10 {
        try await (index % 2 == 0 ? here : there).save(.create, "r\(index)")
      }
      #expect(try await here.changes(since: token).names == (0..<10).map { "r\($0)" })
      #expect(try await there.changes(since: token).names == (0..<10).map { "r\($0)" })
    }
  }

  @Test("Only one of two servers that create the same public record succeeds")
  func compareAndSet() async throws {
    try await servers(2) { servers, _ in
      var people = [try await servers[0].person(), try await servers[0].person()]
      people[1].server = servers[1]
      // The public database has no counter that would order them.
      for round in 0..<10 {
        let wins = try await withThrowingTaskGroup(of: Bool.self) { [people] group in
          for person in people {
            group.addTask {
              let operation = RecordOperation.make(.create, "seat\(round)", ["n": .int64(1)])
              let result = try await person.modify([operation], in: .public, zone: nil)[0]
              if case .failure(let error) = result { #expect(error.serverErrorCode == .conflict) }
              return result.item != nil
            }
          }
          return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(wins == 1)
      }
    }
  }

  @Test("An index that is being filled misses no concurrent write of other servers")
  func onlineIndex() async throws {
    try await servers(2) { servers, _ in
      let here = try await servers[0].person()
      var there = here
      there.server = servers[1]
      try await here.makeZone()
      let query = RecordQuery(
        recordType: "Note",
        filterBy: [
          QueryFilter(comparator: .equals, fieldName: "n", fieldValue: FieldValue(.int64(7)))
        ]
      )
      try await here.save(.create, "first", ["n": .int64(7)])
      try await withThrowingTaskGroup(of: Void.self) { group in
        for writer in 0..<2 {
          let person = writer == 0 ? here : there
          group.addTask {
            for batch in 0..<10 {
              let operations = (0..<20).map {
                RecordOperation.make(.create, "r\(writer)-\(batch)-\($0)", ["n": .int64(7)])
              }
              _ = try await person.modify(operations)
            }
          }
        }
        group.addTask { [there] in _ = try await there.query(query, limit: 1) }
        try await group.waitForAll()
      }
      var names: [String] = []
      var marker: String?
      repeat {
        let page = try await here.query(query, marker: marker)
        names += page.names
        marker = page.continuationMarker
      } while marker != nil
      #expect(names.count == 401)
      #expect(Set(names).count == 401)
    }
  }

  @Test("A commit notification reaches the other server's listeners")
  func commitNotification() async throws {
    try await TestEngine.run(with: .postgreSQL) {
      try await withTemporaryFolder { folder in
        let (here, there) = (
          try TestEngine.storage(.live, folder: folder),
          try TestEngine.storage(.live, folder: folder)
        )
        let id = try here.partition(
          PartitionKey(container: "c", environment: .development, scope: .private, owner: "_o")
        )
        let (news, heard) = AsyncStream<StorageEvent>.makeStream()
        there.listen { heard.yield($0) }
        let start = try there.newestEvent()
        var batch = WriteBatch(partition: id)
        batch.event = WriteBatch.EventWrite(time: 1, body: Data("hello".utf8))
        try here.commit(batch)
        var found: [StoredEvent] = []
        for await _ in news {
          found = try there.events(after: start, limit: 10)
          if !found.isEmpty { break }
        }
        #expect(found.map(\.body) == [Data("hello".utf8)])
        #expect(found.map(\.partition) == [id])
        here.close()
        there.close()
      }
    }
  }

  @Test("Processes that write concurrently produce a feed without gaps or repetitions")
  func history() async throws {
    guard let program = ServerChild.program else {
      print("The program ServerProcess is not built here.")
      return
    }
    try await servers(1) { servers, url in
      // The processes use the real clock; a session of the past would have expired for them.
      servers[0].clock.advance(seconds: Date().timeIntervalSince(servers[0].clock.now))
      let person = try await servers[0].person()
      try await person.makeZone()
      let children = try (0..<3).map { index in
        try ServerChild(
          program,
          [
            url, servers[0].apiToken, person.webAuthToken ?? "", TestServer.container,
            TestServer.zone.zoneName, "p\(index)", "4", "25",
          ]
        )
      }
      var checker = FeedChecker()
      while children.contains(where: \.isRunning) {
        try await checker.poll(person)
      }
      var acknowledged: [String: [String]] = [:]
      for child in children {
        let lines = child.lines
        #expect(lines.last == "end", "\(child.errors)")
        for line in lines.dropLast() {
          let words = line.split(separator: " ").map(String.init)
          acknowledged[words[1], default: []].append(words.count > 2 ? words[2] : "deleted")
        }
      }
      try await checker.poll(person)
      let ownRecords = 3 * 4 * 25 * 3
      #expect(acknowledged.count == ownRecords + 5)
      for (name, states) in acknowledged {
        let state = checker.states[name]
        if name.hasPrefix("shared") {
          #expect(states.contains(state ?? ""), "\(name)")
        } else {
          // Records created and deleted before the first request are in no feed.
          #expect(state ?? "deleted" == states.last, "\(name)")
        }
      }
      // A client without a token sees the same.
      var fresh = FeedChecker()
      try await fresh.poll(person)
      let living = checker.states.filter { $0.value != "deleted" }
      let areEqual = fresh.states.filter { $0.value != "deleted" } == living
      #expect(areEqual)
    }
  }
}

/// Follows a zone's feed like a device.
private struct FeedChecker {
  var token: String?
  var states: [String: String] = [:]
  private var seen: Set<String> = []

  mutating func poll(_ person: Person) async throws {
    var isMoreComing = true
    while isMoreComing {
      let page = try await person.changes(since: token, limit: 50)
      for record in try page.records.map({ try $0.get() }) {
        let name = record.recordName ?? ""
        let state = record.deleted == true ? "deleted" : record.recordChangeTag ?? ""
        #expect(seen.insert("\(name) \(state)").inserted, "\(name) came twice as \(state)")
        states[name] = state
      }
      token = page.syncToken
      isMoreComing = page.moreComing ?? false
    }
  }
}

/// A `ServerProcess` and its output.
private final class ServerChild {
  private let process = Process()
  private let output = FileManager.default.temporaryDirectory
    .appendingPathComponent("watershed-server-\(UUID().uuidString)")

  /// The folder of programs is that of the test bundle.
  static let program: URL? = {
    var folder = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath()
    for _ in 0..<6 {
      folder.deleteLastPathComponent()
      let candidate = folder.appendingPathComponent("ServerProcess")
      if FileManager.default.isExecutableFile(atPath: candidate.path) { return candidate }
    }
    return nil
  }()

  init(_ program: URL, _ arguments: [String]) throws {
    process.executableURL = program
    process.arguments = arguments
    let errors = output.appendingPathExtension("err")
    for file in [output, errors] { try Data().write(to: file) }
    process.standardOutput = try FileHandle(forWritingTo: output)
    process.standardError = try FileHandle(forWritingTo: errors)
    try process.run()
  }

  deinit {
    try? FileManager.default.removeItem(at: output)
    try? FileManager.default.removeItem(at: output.appendingPathExtension("err"))
  }

  var isRunning: Bool { process.isRunning }

  var lines: [String] {
    let text = (try? String(contentsOf: output, encoding: .utf8)) ?? ""
    return text.split(separator: "\n").map(String.init)
  }

  var errors: String {
    (try? String(contentsOf: output.appendingPathExtension("err"), encoding: .utf8)) ?? ""
  }
}
