import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

/// Reads that are requested in advance.
@Suite("Prefetched reads", .enabled(if: TestEngine.isPostgreSQLInstalled))
struct PrefetchedReadTests {
  private static let zone = ZoneNumber(1)

  @Test("Prefetched rows are of one snapshot, and others are read from it")
  func answers() async throws {
    try await TestEngine.runOnPostgreSQL { storage, _ in
      let id = try storage.partition(.privateDatabase)
      let range = ChangeRange(zone: Self.zone, after: .zero, limit: 10)
      let reads: [PrefetchedRead] = [
        .zones(id, named: ["z"]), .database(id), .changes(id, range),
      ]
      var batch = WriteBatch()
      batch.partition = id
      batch.counter = ChangeNumber(1)
      try storage.read(prefetching: reads) { snapshot in
        let before = try snapshot.database(id).counter
        // Another connection commits in between.
        try storage.commit(batch)
        #expect(try snapshot.database(id).counter == before)
        #expect(try snapshot.zones(in: id, named: ["z"]).isEmpty)
        #expect(try snapshot.changes(in: id, range).isEmpty)
        // Not prefetched, and of the same snapshot.
        #expect(try snapshot.zones(in: id, named: ["y"]).isEmpty)
        #expect(try snapshot.livingZones(in: id).isEmpty)
      }
    }
  }

  @Test("A failed statement leaves the connection usable")
  func faults() async throws {
    try await TestEngine.runOnPostgreSQL { storage, _ in
      let id = try storage.partition(.privateDatabase)
      let wrong = ChangeRange(zone: Self.zone, after: .zero, limit: -1)
      #expect(throws: (any Error).self) {
        try storage.read(prefetching: [.database(id), .changes(id, wrong)]) { _ in }
      }
      let counter = try storage.read(prefetching: [.database(id)]) { try $0.database(id).counter }
      #expect(counter == .zero)
    }
  }
}

@Suite("Change tokens")
struct ChangeTokenTests {
  @Test("A token is read equally by the fast reader and by the decoder", arguments: 0..<32)
  func reading(members: Int) throws {
    var token = ChangeToken(zone: nil, PartitionID(rawValue: 1 << 50), counter: ChangeNumber(7))
    token.incarnation = "i"
    token.principal = .user("_\"ü")
    if members & 1 != 0 { token.zone = ZoneNumber(3) }
    if members & 2 != 0 { token.place = ChangeNumber(.max) }
    if members & 4 != 0 { token.top = ChangeNumber(9) }
    if members & 8 != 0 { token.began = ChangeNumber(5) }
    if members & 16 != 0 {
      token.participation = ChangeNumber(2)
      token.sharedZones = [1, 2]
      token.ceiling = .end(of: ChangeNumber(4))
    }
    let bytes = try WireCoding.encode(token)
    #expect(try WireCoding.decode(ChangeToken.self, from: bytes) == token)
    #expect(try JSONDecoder().decode(ChangeToken.self, from: bytes) == token)
  }
}
