import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

@Suite("Encrypted fields", .everyEngine)
struct EncryptedFieldTests {
  private static let secret = "the secret of the marker"

  /// Saves a record with an encrypted field.
  private func save(
    _ person: Person,
    _ name: String = "r",
    fields: [String: FieldValue] = ["hidden": FieldValue(.string(secret), isEncrypted: true)],
    type: RecordOperationType = .create,
    sequence: ClientSequence? = nil
  ) async throws -> ItemResult<RecordDictionary> {
    let operation = RecordOperation(
      operationType: type,
      record: RecordDictionary(recordName: name, recordType: "Note", fields: fields)
    )
    return try await person.modify([operation], sequence: sequence)[0]
  }

  private func partition(_ person: Person) throws -> PartitionID {
    let storage = person.server.service.storage
    let owner = try storage.read { snapshot in
      try snapshot.account(userName: "ada").flatMap {
        try snapshot.user(container: TestServer.container, account: $0.id)
      }
    }
    return try storage.partition(
      PartitionKey(
        container: TestServer.container,
        environment: .development,
        scope: .private,
        owner: owner?.recordName ?? ""
      )
    )
  }

  private func stored(_ person: Person, _ name: String = "r") throws -> StoredRecord {
    let id = try partition(person)
    return try #require(
      try person.server.service.storage.read { snapshot in
        let zone = try snapshot.zones(in: id, named: [TestServer.zone.zoneName])[0]
        let key = RecordKey(zone: zone.number, name: name)
        return try snapshot.records(in: id, keys: [key])[key]
      }
    )
  }

  @Test("An encrypted value is returned unchanged in every reply, and is nowhere on the disk")
  func atRest() async throws {
    try await withTemporaryFolder { folder in
      let server = try await TestServer(folder: folder)
      let person = try await server.person().extended
      try await person.makeZone()
      let expected = FieldValue(.string(Self.secret), isEncrypted: true)
      let sequence = ClientSequence(device: "d", sequence: 1, acknowledged: 0)
      for _ in 0..<2 {
        // The second time from the kept reply.
        let saved = try await save(person, sequence: sequence).get()
        #expect(saved.fields?["hidden"] == expected)
      }
      #expect(try await person.lookup("r").fields?["hidden"] == expected)
      #expect(try await person.changes().records[0].item?.fields?["hidden"] == expected)
      // Fields that an update does not set stay encrypted, and readable.
      _ = try await save(
        person,
        fields: ["plain": FieldValue(.string("open"))],
        type: .forceUpdate
      ).get()
      #expect(try await person.lookup("r").fields?["hidden"] == expected)
      await server.service.shutdown()
      for file in try FileManager.default.subpathsOfDirectory(atPath: folder.path) {
        let path = folder.appendingPathComponent(file).path
        guard let bytes = FileManager.default.contents(atPath: path) else { continue }
        #expect(bytes.range(of: Data(Self.secret.utf8)) == nil, "\(file)")
        let base64 = Data(Data(Self.secret.utf8).base64EncodedString().prefix(24).utf8)
        #expect(bytes.range(of: base64) == nil, "\(file)")
      }
    }
  }

  @Test("Lists, numbers, locations and bytes are encrypted with their types")
  func types() async throws {
    let person = try await TestServer().person()
    try await person.makeZone()
    let values: [FieldContent] = [
      .int64(7), .double(0.5), .timestamp(1_700_000_000_000), .bytes(Data([1, 2])),
      .location(LocationValue(latitude: 1, longitude: 2)), .stringList(["a", "b"]), .string(""),
    ]
    var fields: [String: FieldValue] = [:]
    for (index, content) in values.enumerated() {
      fields["f\(index)"] = FieldValue(content, isEncrypted: true)
    }
    _ = try await save(person, fields: fields).get()
    #expect(try await person.lookup("r").fields == fields)
    let stored = try stored(person).decodedFields()
    #expect(stored.values.allSatisfy { $0.sealedType != nil })
  }

  @Test("An envelope can be decrypted only in its own field of its own record")
  func bound() async throws {
    let person = try await TestServer().person()
    try await person.makeZone()
    _ = try await save(person).get()
    let vault = person.server.service.vault
    let value = try #require(try stored(person).decodedFields()["hidden"])
    var place = FieldVault.Place(
      container: TestServer.container,
      environment: .development,
      partition: PartitionID(rawValue: 1),
      record: RecordKey(zone: ZoneNumber(1), name: "r"),
      field: "hidden"
    )
    let sealed = try vault.seal(FieldValue(.string("x"), isEncrypted: true), at: place)
    #expect(try vault.open(sealed, at: place).content == .string("x"))
    place.field = "other"
    #expect(throws: UnreadableEnvelope.self) { try vault.open(sealed, at: place) }
    place.field = "hidden"
    place.record.name = "s"
    #expect(throws: UnreadableEnvelope.self) { try vault.open(sealed, at: place) }
    #expect(throws: UnreadableEnvelope.self) { try vault.open(value, at: place) }
    guard case .bytes(var bytes) = sealed.content else { return }
    place.record.name = "r"
    for index in bytes.indices {
      bytes[index] ^= 1
      let broken = FieldValue(.bytes(bytes), isEncrypted: true, sealedType: .string)
      #expect(throws: UnreadableEnvelope.self) { try vault.open(broken, at: place) }
      bytes[index] ^= 1
    }
  }

  @Test("A client cannot pass off encrypted bytes as its own")
  func forged() async throws {
    let person = try await TestServer().person()
    try await person.makeZone()
    _ = try await save(person).get()
    let body =
      #"{"operations":[{"operationType":"create","record":{"recordName":"s","recordType":"Note","#
      + #""fields":{"hidden":{"value":"AQEx","type":"BYTES","isEncrypted":true,"#
      + #""sealedType":"STRING"}}}}],"zoneID":{"zoneName":"notes"}}"#
    let reply = await person.send(.modifyRecords, Data(body.utf8))
    let item = try WireCoding.decode(RecordsResponse.self, from: reply.body).records[0]
    #expect(item.error?.serverErrorCode == .badRequest)
  }

  @Test(
    "Clients' values for the storage's own keys are refused, by both readers",
    arguments: [
      #""b":{"value":"QUJD","type":"BYTES","sealedType":"STRING"}"#,
      #""b":{"value":"QUJD","sealedType":"STRING"}"#,
      #""f":{"value":{"fileChecksum":"AQ==","blob":"x"},"type":"ASSETID"}"#,
      #""f":{"value":{"fileChecksum":"AQ==","blob":"x"}}"#,
    ]
  )
  func storedKeys(field: String) async throws {
    let person = try await TestServer().person()
    try await person.makeZone()
    for extra in ["", #","\u0061":1"#] {
      let body =
        #"{"operations":[{"operationType":"create","desiredKeys":[],"record":{"recordName":"p","#
        + #""recordType":"T","fields":{\#(field)}}}],"zoneID":{"zoneName":"notes"}\#(extra)}"#
      let response = await person.send(.modifyRecords, Data(body.utf8))
      let item = try WireCoding.decode(RecordsResponse.self, from: response.body).records[0]
      #expect(item.error?.serverErrorCode == .badRequest)
    }
  }

  @Test("A record with an invalid envelope fails alone, and its field is not named")
  func unreadable() async throws {
    let server = try await TestServer()
    try await server.service.schemas.importSchema(
      TestSchema.text(
        #"RECORD TYPE Note ("___recordID" REFERENCE QUERYABLE, hidden ENCRYPTED STRING, "#
          + "plain STRING);"
      ),
      container: TestServer.container
    )
    let person = try await server.person().extended
    try await person.makeZone()
    _ = try await save(person, "sealed").get()
    _ = try await save(person, "open", fields: ["plain": FieldValue(.string("x"))]).get()
    // A byte on the disk has changed.
    var record = try stored(person, "sealed")
    var fields = try record.decodedFields()
    guard case .bytes(var bytes)? = fields["hidden"]?.content else {
      Issue.record("the field is not sealed")
      return
    }
    bytes[bytes.count - 1] ^= 1
    fields["hidden"]?.content = .bytes(bytes)
    record.fields = try WireCoding.encode(fields)
    var batch = WriteBatch(partition: try partition(person))
    batch.records = [record]
    try server.service.storage.commit(batch)

    let feed = try await person.changes()
    let found = try await person.query(RecordQuery(recordType: "Note"))
    let looked: RecordsResponse = try await person.call(
      .lookupRecords,
      LookupRecordsRequest(
        records: ["sealed", "open"].map { LookupRecord(recordName: $0) },
        zoneID: TestServer.zone
      )
    )
    for items in [feed.records, found.records, looked.records] {
      #expect(items.compactMap(\.item?.recordName) == ["open"])
      let error = try #require(items.compactMap(\.error).first)
      #expect(error.serverErrorCode == .internalError)
      #expect(error.recordName == "sealed")
      #expect(error.reason?.contains("hidden") == false)
    }
  }

  @Test("A record whose stored fields cannot be read fails alone in a query")
  func malformed() async throws {
    let server = try await TestServer()
    try await server.service.schemas.importSchema(
      TestSchema.text(
        #"RECORD TYPE Note ("___recordID" REFERENCE QUERYABLE SORTABLE, plain STRING QUERYABLE);"#
      ),
      container: TestServer.container
    )
    let person = try await server.person().extended
    try await person.makeZone()
    for name in ["a", "b", "c"] {
      _ = try await save(person, name, fields: ["plain": FieldValue(.string("x"))]).get()
    }
    var record = try stored(person, "b")
    record.fields = Data(#"{"plain":{"value":{},"type":"STRING"}}"#.utf8)
    var batch = WriteBatch(partition: try partition(person))
    batch.records = [record]
    try server.service.storage.commit(batch)
    for query in [
      RecordQuery(recordType: "Note"),
      RecordQuery(recordType: "Note", sortBy: [QuerySort(fieldName: "___recordID")]),
    ] {
      let found = try await person.query(query)
      #expect(found.records.compactMap(\.item?.recordName) == ["a", "c"])
      #expect(found.records.compactMap(\.error?.recordName) == ["b"])
    }
  }

  @Test("Bytes that an earlier server stored like envelopes are read as plain bytes")
  func keptWithoutSeal() async throws {
    let kept = Data(#"{"value":"QUJD","type":"BYTES","sealedType":"STRING"}"#.utf8)
    let value = try WireCoding.decode(FieldValue.self, from: kept, origin: .storage)
    let vault = try await TestServer().service.vault
    let place = FieldVault.Place(
      container: "c",
      environment: .development,
      partition: PartitionID(rawValue: 1),
      record: RecordKey(zone: ZoneNumber(1), name: "r"),
      field: "b"
    )
    #expect(try vault.open(value, at: place) == FieldValue(.bytes(Data("ABC".utf8))))
  }

  @Test("After a rotation old values can be decrypted and new ones use the new key")
  func rotation() async throws {
    try await withTemporaryFolder { folder in
      let server = try await TestServer(folder: folder)
      let person = try await server.person()
      try await person.makeZone()
      _ = try await save(person, "old").get()
      let id = try server.service.rotateKeys(formerHaveLeaked: false)
      _ = try await save(person, "new").get()
      await server.service.shutdown()

      let keys = folder.appendingPathComponent("field-keys.json")
      let mode = try FileManager.default.attributesOfItem(atPath: keys.path)[.posixPermissions]
      #expect((mode as? NSNumber)?.intValue == 0o600)
      var again = person
      again.server = try await TestServer(folder: folder, seed: 2)
      #expect(again.server.service.vault.keyIDs == [id, "1"])
      for name in ["old", "new"] {
        #expect(try await again.lookup(name).content("hidden") == .string(Self.secret))
      }
      await again.server.service.shutdown()
      // Without the keys the database reveals nothing.
      try FileManager.default.removeItem(at: keys)
      try await StorageAdoption(
        ServiceConfiguration(
          dataFolder: folder,
          database: try TestEngine.databaseURL(for: folder)
        )
      ).run()
      var blind = person
      blind.server = try await TestServer(folder: folder, seed: 3)
      await #expect(throws: ErrorDictionary.self) { try await blind.lookup("old") }
      await blind.server.service.shutdown()
    }
  }

  @Test("Violations of the rules for encrypted fields have the documented error texts")
  func rules() async throws {
    let person = try await TestServer().person()
    try await person.makeZone()
    _ = try await save(
      person,
      fields: [
        "hidden": FieldValue(.string("x"), isEncrypted: true), "plain": FieldValue(.string("x")),
      ]
    ).get()
    let plainWrite = try await save(person, "a", fields: ["hidden": FieldValue(.string("x"))])
    #expect(plainWrite.error?.reason?.contains("defined to be: ENCRYPTED_STRING") == true)
    let flagged = try await save(
      person,
      "b",
      fields: ["plain": FieldValue(.string("x"), isEncrypted: true)]
    )
    #expect(
      flagged.error?.reason?.hasPrefix(
        "Attempt to save encrypted data in non encrypted field type"
      ) == true
    )
    let inPublic = try await person.modify(
      [
        RecordOperation(
          operationType: .create,
          record: RecordDictionary(
            recordName: "p",
            recordType: "Other",
            fields: ["hidden": FieldValue(.string("x"), isEncrypted: true)]
          )
        )
      ],
      in: .public,
      zone: nil
    )[0]
    #expect(
      inPublic.error?.reason == "encrypted fields are not supported in the public database"
    )
    let filter = QueryFilter(
      comparator: .equals,
      fieldName: "hidden",
      fieldValue: FieldValue(.string("x"))
    )
    let refused = await #expect(throws: ErrorDictionary.self) {
      try await person.query(RecordQuery(recordType: "Note", filterBy: [filter]))
    }
    #expect(
      refused?.reason?.contains(
        "has a value type of ENCRYPTED_STRING and cannot be queried using filter type EQUALS"
      ) == true
    )
  }
}
