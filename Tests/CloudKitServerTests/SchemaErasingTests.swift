import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

@Suite("Data of fields and types that an import deletes", .everyEngine)
struct SchemaErasingTests {
  private static let before = """
    DEFINE SCHEMA
      RECORD TYPE Note (title STRING QUERYABLE, count INT64 QUERYABLE, file ASSET,
        link REFERENCE, secret ENCRYPTED STRING,
        GRANT READ TO "_world", GRANT CREATE TO "_icloud", GRANT WRITE TO "_creator");
      RECORD TYPE Tag (name STRING, GRANT READ TO "_world", GRANT CREATE TO "_icloud");
    """
  private static let after = """
    DEFINE SCHEMA
      RECORD TYPE Note (title STRING QUERYABLE, secret ENCRYPTED STRING,
        GRANT READ TO "_world");
    """

  /// A few more records than one page has.
  private static let count = 5

  private func world(_ scope: DatabaseScope) async throws -> Person {
    let server = try await TestServer { $0.itemsPerRequest = 3 }
    let person = try await server.person()
    try await person.makeZone()
    try await server.service.importSchema(Self.before, container: TestServer.container)
    for number in 0..<Self.count {
      let zone = scope == .public ? nil : TestServer.zone
      try await person.save(
        .create,
        "note\(number)",
        ["title": .string("t"), "count": .int64(Int64(number))],
        in: scope,
        zone: zone
      )
      try await person.save(.create, "tag\(number)", recordType: "Tag", in: scope, zone: zone)
    }
    return person
  }

  private func forget(_ person: Person) async throws {
    try await person.server.service.importSchema(Self.after, container: TestServer.container)
  }

  @Test(
    "The fields go from every record, and records of the types",
    arguments: [
      DatabaseScope.private, .public,
    ]
  )
  func erases(scope: DatabaseScope) async throws {
    let person = try await world(scope)
    let zone = scope == .public ? nil : TestServer.zone
    try await forget(person)
    for number in 0..<Self.count {
      let note = try await person.lookup("note\(number)", in: scope, zone: zone)
      #expect(note.fields?.keys.sorted() == ["title"])
      await #expect(throws: ErrorDictionary.self) {
        try await person.lookup("tag\(number)", in: scope, zone: zone)
      }
    }
  }

  @Test("Devices are told: each record once, as a change or as gone")
  func feed() async throws {
    let person = try await world(.private)
    let token = try await person.changes().syncToken
    try await forget(person)
    var names: [String] = []
    var next = token
    while true {
      let page = try await person.changes(since: next)
      names += page.records.compactMap { result in
        result.item.map { ($0.deleted == true ? "-" : "+") + ($0.recordName ?? "") }
      }
      next = page.syncToken
      if page.moreComing != true { break }
    }
    let all = (0..<Self.count).flatMap { ["+note\($0)", "-tag\($0)"] }
    #expect(names.sorted() == all.sorted())
  }

  @Test("A field of the same name and another type begins empty, its index with it")
  func newType() async throws {
    let person = try await world(.private)
    let old = RecordQuery(
      recordType: "Note",
      filterBy: [QueryFilter(comparator: .equals, fieldName: "count", fieldValue: .init(.int64(2)))]
    )
    #expect(try await person.query(old).names == ["note2"])
    try await forget(person)
    try await person.save(.update, "note1", ["count": .string("two")], tag: tag(person, "note1"))
    let new = RecordQuery(
      recordType: "Note",
      filterBy: [
        QueryFilter(comparator: .equals, fieldName: "count", fieldValue: .init(.string("two")))
      ]
    )
    #expect(try await person.query(new).names == ["note1"])
  }

  private func tag(_ person: Person, _ name: String) async throws -> String? {
    try await person.lookup(name).recordChangeTag
  }

  @Test("Files and references go with their fields, and sealed fields stay readable")
  func links() async throws {
    let person = try await world(.private)
    try await person.save(.create, "target")
    let operation = RecordOperation(
      operationType: .create,
      record: RecordDictionary(
        recordName: "rich",
        recordType: "Note",
        fields: [
          "file": FieldValue(.asset(try await person.upload(Data([1])))),
          "link": FieldValue(
            .reference(ReferenceValue(recordName: "target", action: .validate))
          ),
          "secret": FieldValue(.string("s"), isEncrypted: true),
        ]
      )
    )
    _ = try await person.modify([operation])[0].get()
    try await forget(person)
    let rich = try await person.lookup("rich")
    #expect(rich.fields?.keys.sorted() == ["secret"])
    #expect(rich.content("secret") == .string("s"))
    // Nothing holds the target any more.
    try await person.save(.forceDelete, "target", recordType: nil)
  }

  @Test("What is in production cannot be deleted, so nothing is")
  func production() async throws {
    let person = try await world(.private)
    try await person.server.service.promoteSchema(container: TestServer.container)
    await #expect(throws: DatabaseSchema.Refusal.self) { try await forget(person) }
    #expect(try await person.lookup("note1").content("count") == .int64(1))
  }

  @Test("To validate deletes nothing")
  func validation() async throws {
    let person = try await world(.private)
    try await person.server.service.importSchema(
      Self.after,
      container: TestServer.container,
      onlyValidates: true
    )
    #expect(try await person.lookup("note1").content("count") == .int64(1))
    #expect(try await person.lookup("tag1").recordName == "tag1")
  }
}
