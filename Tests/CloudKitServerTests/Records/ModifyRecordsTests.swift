import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

@Suite("records/modify", .everyEngine)
struct ModifyRecordsTests {
  private func world() async throws -> Person {
    let person = try await TestServer().person()
    try await person.makeZone()
    return person
  }

  private func code(_ body: () async throws -> RecordDictionary) async -> ServerErrorCode? {
    do {
      _ = try await body()
      return nil
    } catch { return (error as? ErrorDictionary)?.serverErrorCode }
  }

  // MARK: The seven operations

  @Test(
    "Each operation has its documented result for existing, changed and missing records",
    arguments: [
      (RecordOperationType.create, ServerErrorCode.conflict, ServerErrorCode.conflict, nil),
      (.update, nil, .conflict, .notFound),
      (.forceUpdate, nil, nil, nil),
      (.replace, nil, .conflict, .notFound),
      (.forceReplace, nil, nil, nil),
      (.delete, nil, .conflict, .notFound),
      (.forceDelete, nil, nil, nil),
    ] as [(RecordOperationType, ServerErrorCode?, ServerErrorCode?, ServerErrorCode?)]
  )
  func operations(
    type: RecordOperationType,
    exists: ServerErrorCode?,
    differs: ServerErrorCode?,
    missing: ServerErrorCode?
  ) async throws {
    let person = try await world()
    for name in ["there", "differs"] {
      try await person.save(.create, name, ["a": .int64(1), "b": .int64(2)])
    }
    let tag = try await person.lookup("there").recordChangeTag
    #expect(
      await code { try await person.save(type, "there", ["a": .int64(3)], tag: tag) } == exists
    )
    #expect(
      await code { try await person.save(type, "differs", ["a": .int64(3)], tag: "old") }
        == differs
    )
    #expect(
      await code { try await person.save(type, "missing", ["a": .int64(3)], tag: "old") }
        == missing
    )

    // The state afterwards.
    let found = try? await person.lookup("there")
    switch type {
    case .create: #expect(found?.content("a") == .int64(1))
    case .update, .forceUpdate:
      #expect(found?.content("a") == .int64(3))
      #expect(found?.content("b") == .int64(2))
    case .replace, .forceReplace:
      #expect(found?.content("a") == .int64(3))
      #expect(found?.content("b") == nil)
    case .delete, .forceDelete: #expect(found == nil)
    }
  }

  @Test(
    "An operation that compares tags needs one, also without a type",
    arguments: [RecordOperationType.update, .replace, .delete]
  )
  func tagIsNeeded(type: RecordOperationType) async throws {
    let person = try await world()
    try await person.save(.create, "r")
    #expect(await code { try await person.save(type, "r") } == .badRequest)
    let tag = try await person.lookup("r").recordChangeTag
    #expect(await code { try await person.save(type, "r", tag: tag, recordType: nil) } == nil)
  }

  @Test("A reply has the record as it was saved")
  func reply() async throws {
    let person = try await world().on("phone")
    let saved = try await person.save(.create, "r", ["title": .string("x")])
    let user = try await person.call(
      .caller,
      [String: String](),
      in: .public,
      as: UserIdentity.self
    ).userRecordName
    #expect(saved.recordType == "Note")
    #expect(saved.content("title") == .string("x"))
    #expect(saved.deleted == false)
    #expect(saved.created?.timestamp == 1_700_000_000_000)
    #expect(saved.created?.userRecordName == user)
    #expect(saved.modified?.deviceID == "phone")
    #expect(
      saved.zoneID
        == ZoneID(
          zoneName: "notes",
          ownerRecordName: user,
          zoneType: "REGULAR_CUSTOM_ZONE"
        )
    )
    #expect(try await person.lookup("r") == saved)
  }

  @Test("A record without a name gets one")
  func inventedName() async throws {
    let person = try await world()
    let saved = try await person.save(.create, nil, ["a": .int64(1)])
    #expect(UUID(uuidString: saved.recordName ?? "") != nil)
    #expect(await code { try await person.save(.update, nil, tag: "x") } == .badRequest)
  }

  @Test("A null removes a field, and every save sets a new tag")
  func nullAndTags() async throws {
    let person = try await world()
    var tags: Set<String> = []
    var tag = try await person.save(.create, "r", ["a": .int64(1)]).recordChangeTag
    for number in 0..<5 {
      #expect(tags.insert(tag ?? "").inserted)
      tag = try await person.save(.update, "r", ["b": .int64(Int64(number))], tag: tag)
        .recordChangeTag
    }
    try await person.save(.forceDelete, "r")
    let again = try await person.save(.create, "r", ["a": .int64(1)]).recordChangeTag
    #expect(tags.insert(again ?? "").inserted)
    let emptied = try await person.save(.update, "r", ["a": .null], tag: again)
    #expect(emptied.content("a") == nil)
  }

  @Test("Every type of value is stored as it was sent")
  func values() async throws {
    let person = try await world()
    let fields: [String: FieldContent] = [
      "s": .string("é\u{0}\n"), "i": .int64(.min), "d": .double(0.1), "t": .timestamp(-1),
      "b": .bytes(Data([0, 1, 255])), "l": .location(LocationValue(latitude: 1, longitude: 2)),
      "sl": .stringList(["a", ""]), "il": .int64List([1, 2]), "dl": .doubleList([0.5]),
      "tl": .timestampList([1]), "bl": .bytesList([Data()]),
      "ll": .locationList([LocationValue(latitude: -1, longitude: 0.5)]),
      "r": .reference(ReferenceValue(recordName: "x", action: ReferenceAction.none)),
    ]
    try await person.save(.create, "r", fields)
    // Other clients get the zone of a reference too.
    let found = try await person.extended.lookup("r")
    #expect(found.fields?.mapValues(\.content) == fields)
  }

  @Test("desiredKeys and numbersAsStrings affect the reply only")
  func shaping() async throws {
    let person = try await world()
    var operation = RecordOperation.make(.create, "r", ["a": .int64(1), "b": .int64(2)])
    operation.desiredKeys = ["a"]
    operation.numbersAsStrings = true
    let body = try WireCoding.encode(
      ModifyRecordsRequest(operations: [operation], zoneID: TestServer.zone, desiredKeys: [])
    )
    let text = String(
      decoding: await person.send(.modifyRecords, body).body,
      as: UTF8.self
    )
    #expect(text.contains(#""fields":{"a":{"type":"INT64","value":"1"}}"#))
    #expect(try await person.lookup("r").fields?.count == 2)
  }

  // MARK: Batches

  @Test("An atomic batch stores nothing when one item fails, and names the failed one")
  func atomic() async throws {
    let person = try await world()
    try await person.save(.create, "b")
    let operations = ["a", "b", "c"].map { RecordOperation.make(.create, $0) }
    let results = try await person.modify(operations)
    #expect(
      results.map { $0.error?.serverErrorCode } == [.atomicError, .conflict, .atomicError]
    )
    #expect(results.map { $0.error?.recordName } == ["a", "b", "c"])
    #expect(try await person.changes().names == ["b"])
  }

  @Test("A batch that is not atomic stores the valid items")
  func notAtomic() async throws {
    let person = try await world()
    try await person.save(.create, "b")
    let operations = ["a", "b", "c"].map { RecordOperation.make(.create, $0) }
    let results = try await person.modify(operations, atomic: false)
    #expect(results.map { $0.error?.serverErrorCode } == [nil, .conflict, nil])
    #expect(try await person.changes().names == ["b", "a", "c"])
  }

  @Test("The default zone has no atomic batches")
  func defaultZone() async throws {
    let person = try await world()
    try await person.save(.create, "b", zone: nil)
    let operations = ["a", "b"].map { RecordOperation.make(.create, $0) }
    let results = try await person.modify(operations, zone: nil, atomic: true)
    #expect(results.map { $0.error?.serverErrorCode } == [nil, .conflict])
  }

  @Test("A record may occur only once in a batch")
  func once() async throws {
    let person = try await world()
    let error = await #expect(throws: ErrorDictionary.self) {
      try await person.modify([.make(.create, "a"), .make(.forceDelete, "a")])
    }
    #expect(error?.serverErrorCode == .badRequest)
  }

  @Test("A batch has at most 200 operations", arguments: [199, 200, 201])
  func operationLimit(count: Int) async throws {
    let person = try await world()
    let operations = (0..<count).map { RecordOperation.make(.create, "r\($0)") }
    if count <= 200 {
      #expect(try await person.modify(operations).compactMap(\.item).count == count)
    } else {
      let error = await #expect(throws: ErrorDictionary.self) {
        try await person.extended.modify(operations)
      }
      #expect(error?.serverErrorCode == .badRequest)
      #expect(error?.extension?.code == .limitExceeded)
    }
  }

  @Test("A record may have at most a megabyte", arguments: [-1, 0, 1])
  func sizeLimit(over: Int) async throws {
    let person = try await world()
    // The field's name counts too.
    let text = String(repeating: "x", count: 1_048_576 - 1 + over)
    let failure = await code { try await person.save(.create, "r", ["t": .string(text)]) }
    #expect(failure == (over > 0 ? .badRequest : nil))
  }

  @Test(
    "A record's name is printable ASCII of at most 255 characters",
    arguments: [
      ("a", true), (String(repeating: "n", count: 255), true),
      (String(repeating: "n", count: 256), false), ("", false), ("_a", false), ("é", false),
      ("a\n", false), ("a b/c?d", true),
    ]
  )
  func names(name: String, isFine: Bool) async throws {
    let person = try await world()
    #expect(await code { try await person.save(.create, name) } == (isFine ? nil : .badRequest))
  }

  // MARK: Conflicts, replays

  @Test("With the capability header a conflict has the server's record")
  func serverRecord() async throws {
    let person = try await world()
    let saved = try await person.save(.create, "r", ["a": .int64(1)])
    let operation = RecordOperation.make(.update, "r", ["a": .int64(2)], tag: "old")
    let plain = try await person.modify([operation])[0].error
    #expect(plain?.reason == "record to update already exists with a different change tag")
    #expect(plain?.extension == nil)
    let exact = try await person.extended.modify([operation])[0].error
    #expect(exact?.extension?.code == .serverRecordChanged)
    #expect(exact?.extension?.serverRecord == saved)
    let exists = try await person.extended.modify([.make(.create, "r")])[0].error
    #expect(exists?.extension?.serverRecord == saved)
    #expect(exists?.serverErrorCode == .exists)
    // As the live service replies to its own clients.
    let reported = try await person.modify([.make(.create, "r")])[0].error
    #expect(reported?.serverErrorCode == .conflict)
    #expect(reported?.reason == "record to insert already exists")
    #expect(reported?.extension == nil)
  }

  @Test("A failed create without a name is answered with the name that it would have had")
  func namelessFailure() async throws {
    let person = try await world()
    try await person.save(.create, "b")
    let items = try await person.modify([.make(.create, nil), .make(.create, "b")])
    #expect(items[0].error?.serverErrorCode == .atomicError)
    #expect(items[0].error?.recordName?.isEmpty == false)
    let elsewhere = try await person.modify(
      [.make(.create, nil)],
      zone: ZoneID(zoneName: "nowhere")
    )
    #expect(elsewhere[0].error?.recordName?.isEmpty == false)
  }

  @Test("A repeated batch gets the kept reply, until it is acknowledged")
  func replay() async throws {
    let person = try await world().extended
    let first = ClientSequence(device: "phone", sequence: 1, acknowledged: 0)
    let batch = [RecordOperation.make(.create, "r", ["a": .int64(1)])]
    let reply = try await person.modify(batch, sequence: first)
    #expect(try await person.modify(batch, sequence: first) == reply)
    #expect(reply[0].item != nil)

    // Another device's first batch is another batch.
    let other = ClientSequence(device: "tablet", sequence: 1, acknowledged: 0)
    #expect(
      try await person.modify(batch, sequence: other)[0].error?.serverErrorCode == .exists
    )

    // The next batch acknowledges the first, whose reply is then removed.
    let second = ClientSequence(device: "phone", sequence: 2, acknowledged: 1)
    _ = try await person.modify([.make(.create, "s")], sequence: second)
    let error = await #expect(throws: ErrorDictionary.self) {
      try await person.modify(batch, sequence: first)
    }
    #expect(error?.extension?.code == .sequencePassed)
  }

  @Test("A batch that arrives again after its reply was acknowledged creates nothing again")
  func lateRepetition() async throws {
    let person = try await world().extended
    func number(_ sequence: Int64) -> ClientSequence {
      ClientSequence(device: "phone", sequence: sequence, acknowledged: sequence - 1)
    }
    let batch = [RecordOperation.make(.create, "r", ["a": .int64(1)])]
    _ = try await person.modify(batch, sequence: number(1))
    _ = try await person.modify([.make(.forceDelete, "r")], sequence: number(2))
    let error = await #expect(throws: ErrorDictionary.self) {
      try await person.modify(batch, sequence: number(1))
    }
    #expect(error?.extension?.code == .sequencePassed)
    await #expect(throws: ErrorDictionary.self) { try await person.lookup("r") }
    // A number that the device has not used yet is executed, and so is one of another device.
    #expect(try await person.modify(batch, sequence: number(3))[0].item != nil)
  }

  @Test("A kept reply is returned for its own batch only")
  func reusedSequence() async throws {
    let person = try await world().extended
    let sequence = ClientSequence(device: "phone", sequence: 1, acknowledged: 0)
    _ = try await person.modify([.make(.create, "r")], sequence: sequence)
    let error = await #expect(throws: ErrorDictionary.self) {
      try await person.modify([.make(.create, "s")], sequence: sequence)
    }
    #expect(error?.extension?.code == .sequenceReused)
  }

  @Test("Without the capability header a sequence is ignored")
  func sequenceWithoutHeader() async throws {
    let person = try await world()
    let sequence = ClientSequence(device: "phone", sequence: 1, acknowledged: 0)
    let batch = [RecordOperation.make(.create, "r")]
    _ = try await person.modify(batch, sequence: sequence)
    #expect(
      try await person.modify(batch, sequence: sequence)[0].error?.serverErrorCode == .conflict
    )
  }

  @Test("Exactly one of two writers with one tag succeeds each time")
  func twoWriters() async throws {
    let person = try await world()
    var tag = try await person.save(.create, "r", ["n": .int64(0)]).recordChangeTag
    for round in 1...20 {
      let current = tag
      let results = await withTaskGroup(of: RecordDictionary?.self) { group in
        for writer in 0..<4 {
          group.addTask {
            try? await person.save(
              .update,
              "r",
              ["n": .int64(Int64(round * 10 + writer))],
              tag: current
            )
          }
        }
        return await group.reduce(into: []) { $0.append($1) }
      }
      let winners = results.compactMap { $0 }
      #expect(winners.count == 1)
      tag = try await person.lookup("r").recordChangeTag
      #expect(tag == winners.first?.recordChangeTag)
    }
  }

  @Test("A missing zone is the error of each item")
  func missingZone() async throws {
    let person = try await TestServer().person()
    let results = try await person.modify([.make(.create, "a"), .make(.create, "b")])
    #expect(results.map { $0.error?.serverErrorCode } == [.zoneNotFound, .zoneNotFound])
  }
}
