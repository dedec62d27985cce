import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

/// The rows that records with many values make, and the filling of indexes.
@Suite("The size of indexes", .everyEngine)
struct IndexBoundsTests {
  /// Notes whose tags are in an index.
  private func world(_ change: (inout ServiceLimits) -> Void) async throws -> Person {
    let person = try await QueriedNotes.world(limits: change)
    let filter = #""comparator":"LIST_CONTAINS","fieldName":"tags","fieldValue":{"value":"x"}"#
    #expect(try await person.filtered(filter).count == 4)
    return person
  }

  private func note(
    _ name: String,
    _ count: Int,
    _ type: RecordOperationType = .create
  ) -> RecordOperation {
    .make(type, name, ["tags": .stringList((0..<count).map { "\(name)-\($0)" })])
  }

  private func send(
    _ operations: [RecordOperation],
    _ person: Person
  ) async throws -> ErrorDictionary? {
    do {
      for item in try await person.modify(operations) { _ = try item.get() }
      return nil
    } catch let error as ErrorDictionary {
      return error
    }
  }

  @Test("Records with more values in indexes than one request writes fit in smaller batches")
  func batches() async throws {
    let person = try await world { $0.linkedRowsPerRequest = 100 }
    let notes = (0..<3).map { note("n\($0)", 40) }
    let refused = try #require(try await send(notes, person))
    #expect(refused.serverErrorCode == .badRequest)
    #expect(refused.extension == nil || refused.extension?.code == .limitExceeded)
    #expect(refused.reason?.contains("100") == true)
    await #expect(throws: ErrorDictionary.self) { try await person.lookup("n0") }
    #expect(try await send([notes[0], notes[1]], person) == nil)
    #expect(try await send([notes[2]], person) == nil)
    // 101 values of one record are too many in any case.
    #expect(try await send([note("large", 101)], person)?.serverErrorCode == .badRequest)
    #expect(try await send([note("large", 100)], person) == nil)
    // What is removed counts in a batch, and a single record can always be deleted.
    let deletions = ["n0", "n1", "n2"].map { RecordOperation.make(.forceDelete, $0) }
    #expect(try await send(deletions, person)?.serverErrorCode == .badRequest)
    for deletion in deletions { #expect(try await send([deletion], person) == nil) }
    #expect(try await send([note("large", 100, .forceReplace)], person) == nil)
  }

  @Test("One person adds a limited number of values to indexes in a second")
  func rate() async throws {
    let person = try await world {
      $0.linkedRowsPerSecond = 10
      $0.linkedRowBurst = 50
    }
    let bob = try await person.server.person("bob")
    try await bob.makeZone()
    #expect(try await send([note("a1", 60)], person) == nil)
    let refused = try #require(try await send([note("a2", 1)], person))
    #expect(refused.serverErrorCode == .throttled)
    #expect(refused.retryAfter ?? 0 > 0)
    // Deletions and other people are not affected.
    #expect(try await send([.make(.forceDelete, "a1")], person) == nil)
    #expect(try await send([note("b", 1)], bob) == nil)
    person.server.clock.advance(seconds: 5)
    #expect(try await send([note("a2", 1)], person) == nil)
  }

  // MARK: Filling

  private static let field = "f"

  private func record(_ name: String, _ change: Int64, bytes: Int = 2) -> StoredRecord {
    var record = StoredRecord.plain(
      name,
      in: .defaultZone,
      type: "T",
      tag: "t\(change)",
      change: change
    )
    record.fields = Data(repeating: UInt8(ascii: " "), count: bytes)
    return record
  }

  private func filled(
    _ storage: any Storage,
    _ id: PartitionID
  ) throws -> [String] {
    try storage.read { snapshot in
      try snapshot.entries(
        in: id,
        IndexWalk(type: "T", field: Self.field, zone: .defaultZone, limit: 100)
      )
    }.map { "\($0.record.name) \(String(decoding: $0.key.bytes, as: UTF8.self))" }
  }

  @Test("A step of filling an index reads about a megabyte of records")
  func fillingBytes() throws {
    let storage = try TestEngine.storage(.still)
    let id = try storage.partition(.privateDatabase)
    var batch = WriteBatch(partition: id)
    batch.records = (1...7).map { record("r\($0)", $0, bytes: 400_000) }
    batch.counter = ChangeNumber(7)
    try storage.commit(batch)
    var pages: [Int] = []
    var isReady = false
    while !isReady {
      var count = 0
      isReady = try storage.fillIndex(in: id, type: "T", field: Self.field, limit: 500) { record in
        count += 1
        return [IndexKey(bytes: Data(record.key.name.utf8))]
      }
      pages.append(count)
    }
    #expect(pages == [0, 3, 3, 1])
    #expect(try filled(storage, id) == (1...7).map { "r\($0) r\($0)" })
  }

  @Test("A record that is written while an index is filled has the entries of its last version")
  func writtenMeanwhile() throws {
    let storage = try TestEngine.storage(.still)
    let id = try storage.partition(.privateDatabase)
    var batch = WriteBatch(partition: id)
    batch.records = [record("a", 1), record("b", 2), record("c", 3)]
    batch.counter = ChangeNumber(3)
    try storage.commit(batch)
    var hasWritten = false
    let keys = { (record: StoredRecord) throws -> [IndexKey] in
      if !hasWritten {
        hasWritten = true
        var batch = WriteBatch(partition: id)
        var tombstone = self.record("b", 5)
        tombstone.isDeleted = true
        batch.records = [self.record("a", 4), tombstone]
        batch.counter = ChangeNumber(5)
        batch.expectedIndexes = try storage.read { try $0.database(id).indexes }
        batch.addedIndexEntries = [
          IndexEntry(
            type: "T",
            field: Self.field,
            value: IndexKey(bytes: Data("t4".utf8)),
            key: RecordKey(zone: .defaultZone, name: "a")
          )
        ]
        try storage.commit(batch)
      }
      return [IndexKey(bytes: Data(record.tag.utf8))]
    }
    while try !storage.fillIndex(
      in: id,
      type: "T",
      field: Self.field,
      limit: 500,
      entries: keys
    ) {}
    #expect(try filled(storage, id) == ["c t3", "a t4"])
  }
}
