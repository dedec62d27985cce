import CloudKitWebServices
import Effects
import Foundation
import Testing
import WatershedSQLite

@testable import CloudKitServer

@Suite("Invariants of the storage", .everyEngine)
struct StorageInvariantTests {
  @Test("Records, shares, files and deletions leave the tables consistent")
  func consistent() async throws {
    try await withTemporaryFolder { folder in
      let server = try await TestServer(folder: folder)
      let ada = try await server.person()
      try await ada.makeZone()
      _ = try await ada.modify((0..<5).map { .make(.create, "a\($0)") })
      _ = try await ada.modify([.make(.forceDelete, "a1")])
      let storage = server.service.storage
      #expect(try storage.brokenInvariants(in: folder.appendingPathComponent("audit")) == [])
    }
  }
}

@Suite("The audit of the storage")
struct StorageAuditTests {
  @Test(
    "The audit names a rule that a damaged row breaks",
    arguments: [
      ("DELETE FROM databases", "a partition of the directory has no counter"),
      ("UPDATE databases SET counter = 0", "a zone has a later change than its database's counter"),
      ("DELETE FROM zones", "a record is in a zone that does not exist"),
      ("DELETE FROM accounts", "a session belongs to an account that does not exist"),
      (
        "INSERT INTO replies VALUES (2, '_u', 'd', 1, x'00')",
        "a kept reply belongs to a database that does not exist"
      ),
      (
        "INSERT INTO subscriptions VALUES (2, '_u', 's', '', x'00')",
        "a subscription belongs to a database that does not exist"
      ),
      (
        "INSERT INTO departures VALUES (2, 1, 's', 1, 1, 'n', 't', 1)",
        "a departure belongs to a database that does not exist"
      ),
    ]
  )
  func damaged(_ statement: String, _ sentence: String) async throws {
    try await withTemporaryFolder { folder in
      let server = try await TestServer(folder: folder)
      let ada = try await server.person()
      try await ada.makeZone()
      _ = try await ada.modify([.make(.create, "a")])
      let file = folder.appendingPathComponent("copy.sqlite")
      try server.service.storage.copy(to: file)
      let connection = try SQLiteConnection(path: file.path)
      try connection.execute(statement)
      let broken = try StorageAudit(session: SQLiteSession(connection: connection))
        .brokenInvariants()
      #expect(broken.contains { $0.hasPrefix(sentence) }, "\(broken)")
    }
  }
}

@Suite("Invariants of a batch")
struct WriteBatchInvariantTests {
  @Test("A batch that does not increase the counter, or writes rows without a partition, is broken")
  func counters() throws {
    var batch = WriteBatch(partition: PartitionID(rawValue: 1))
    batch.expectedCounter = ChangeNumber(4)
    batch.counter = ChangeNumber(5)
    #expect(try batch.brokenInvariants() == [])
    batch.counter = ChangeNumber(4)
    #expect(try batch.brokenInvariants() == ["a batch does not increase the counter"])
    var unplaced = WriteBatch()
    unplaced.counter = ChangeNumber(1)
    #expect(
      try unplaced.brokenInvariants()
        == ["a batch writes records, zones or a counter, and names no partition"]
    )
  }

  @Test("The lists of a batch name records that it writes, and each record once")
  func recordLists() throws {
    let key = RecordKey(zone: ZoneNumber(1), name: "a")
    func broken(_ change: (inout WriteBatch) -> Void) throws -> [String] {
      var batch = WriteBatch(partition: PartitionID(rawValue: 1))
      change(&batch)
      return try batch.brokenInvariants()
    }
    #expect(
      try broken { $0.madeRecords = [key] } == ["a batch makes a record that it does not write"]
    )
    let reference = StoredReference(source: key, target: "b", action: .none)
    #expect(
      try broken { $0.references = [reference] }
        == ["a batch adds a reference to a record whose former ones stay"]
    )
    let use = StoredAssetUse(key: key, digest: "d")
    #expect(
      try broken { $0.assetUses = [use] }
        == ["a batch adds the use of a file to a record whose former ones stay"]
    )
    #expect(
      try broken {
        $0.references = [reference]
        $0.assetUses = [use]
        $0.relinkedRecords = [key]
      } == []
    )
  }

  @Test("A share's state has its owner first, and open participations of participants only")
  func shares() throws {
    var state = ShareState(
      root: "a",
      shortGUID: "g",
      owner: SharePerson(user: "_o"),
      participantID: "1"
    )
    #expect(state.brokenInvariants() == [])
    state.publicPermission = .readOnly
    #expect(
      try state.accept(SharePerson(user: "_p"), at: ChangeNumber(3), participantID: "2", limit: 5)
    )
    #expect(state.brokenInvariants() == [])
    state.participants.removeLast()
    #expect(
      state.brokenInvariants() == ["a participation is open whose user is no participant"]
    )
    state.end("_p", at: ChangeNumber(2))
    #expect(state.brokenInvariants() == ["a participation ended before it began"])
    state.participants.removeAll()
    #expect(state.brokenInvariants().contains("the first participant of a share is not its owner"))
  }
}
