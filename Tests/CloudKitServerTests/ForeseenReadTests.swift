import CloudKitWebServices
import Effects
import Foundation
import Testing

@testable import CloudKitServer

/// Questions that are told beforehand.
@Suite("Foreseen reads", .enabled(if: TestEngine.isPostgreSQLInstalled))
struct ForeseenReadTests {
  @Test("What was foreseen is answered as if it were asked, as of one moment; nothing else is")
  func answers() async throws {
    try await TestEngine.run(with: .postgreSQL) {
      let url = try #require(try TestEngine.databaseURL(for: nil))
      let effects = Effects(
        clock: StoppedClock(),
        randomness: SeededRandomness(seed: 1),
        tasks: PoolTaskSpawner()
      )
      let storage = try PostgreSQLStorage(url: url, effects: effects)
      defer { storage.close() }
      let id = try storage.partition(
        PartitionKey(container: "c", environment: .development, scope: .private, owner: "o")
      )
      let range = ChangeRange(zone: ZoneNumber(1), after: .zero, limit: 10)
      let reads: [ForeseenRead] = [
        .zones(id, named: ["z"]), .database(id), .changes(id, range),
      ]
      let foreseen = try #require(try storage.foreseen(reads))
      #expect(try foreseen.database(id) == storage.read { try $0.database(id) })
      #expect(try foreseen.zones(in: id, named: ["z"]).isEmpty)
      #expect(try foreseen.changes(in: id, range).isEmpty)
      #expect(throws: Unforeseen.self) { try foreseen.zones(in: id, named: ["y"]) }
      #expect(throws: Unforeseen.self) { try foreseen.livingZones(in: id) }

      var runs = 0
      let zones = try storage.read(foreseeing: reads) { snapshot in
        runs += 1
        return try snapshot.livingZones(in: id)
      }
      #expect(zones.isEmpty)
      #expect(runs == 2)
    }
  }

  @Test("A statement that fails leaves the connection fit for the next")
  func faults() async throws {
    try await TestEngine.run(with: .postgreSQL) {
      let url = try #require(try TestEngine.databaseURL(for: nil))
      let effects = Effects(
        clock: StoppedClock(),
        randomness: SeededRandomness(seed: 1),
        tasks: PoolTaskSpawner()
      )
      let storage = try PostgreSQLStorage(url: url, effects: effects)
      defer { storage.close() }
      let id = PartitionID(rawValue: 1)
      let wrong = ChangeRange(zone: ZoneNumber(1), after: .zero, limit: -1)
      #expect(throws: (any Error).self) {
        try storage.foreseen([.database(id), .changes(id, wrong)])
      }
      #expect(try storage.foreseen([.database(id)])?.database(id).counter == .zero)
    }
  }
}

@Suite("Change tokens")
struct ChangeTokenTests {
  @Test("A token says the same to the quick reader and to the decoder", arguments: 0..<32)
  func reading(members: Int) throws {
    var token = ChangeToken(zone: nil, PartitionID(rawValue: 1 << 50), counter: ChangeNumber(7))
    token.incarnation = "i"
    token.principal = "_\"ü"
    if members & 1 != 0 { token.zone = ZoneNumber(3) }
    if members & 2 != 0 { token.place = ChangeNumber(.max) }
    if members & 4 != 0 { token.top = ChangeNumber(9) }
    if members & 8 != 0 { token.began = ChangeNumber(5) }
    if members & 16 != 0 {
      token.stay = ChangeNumber(2)
      token.sharedZones = [1, 2]
      token.ceiling = .end(of: ChangeNumber(4))
    }
    let bytes = try WireCoding.encode(token)
    #expect(try WireCoding.decode(ChangeToken.self, from: bytes) == token)
    #expect(try JSONDecoder().decode(ChangeToken.self, from: bytes) == token)
  }
}
