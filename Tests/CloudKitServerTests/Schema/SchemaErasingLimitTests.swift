import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

@Suite("Erasing of schema fields and types larger than a request may be", .everyEngine)
struct SchemaErasingLimitTests {
  private static let before = """
    DEFINE SCHEMA
      RECORD TYPE Folder (title STRING QUERYABLE);
      RECORD TYPE Note (title STRING QUERYABLE, text STRING SEARCHABLE, link REFERENCE);
    """
  private static let withoutFolders = """
    DEFINE SCHEMA
      RECORD TYPE Note (title STRING QUERYABLE, text STRING SEARCHABLE, link REFERENCE);
    """
  private static let withoutTexts = """
    DEFINE SCHEMA
      RECORD TYPE Folder (title STRING QUERYABLE);
      RECORD TYPE Note (title STRING QUERYABLE);
    """

  /// Two folders of five notes each, which are deleted with their folder.
  private func world(_ limits: @escaping (inout ServiceLimits) -> Void) async throws -> Person {
    let server = try await TestServer(limits: limits)
    let person = try await server.person()
    try await person.makeZone()
    try await server.service.schemas.importSchema(Self.before, container: TestServer.container)
    for folder in ["f", "g"] {
      try await person.save(.create, folder, recordType: "Folder")
      for number in 0..<5 {
        try await person.save(
          .create,
          "\(folder)\(number)",
          [
            "text": .string("one two three"),
            "title": .string("t"),
            "link": .reference(ReferenceValue(recordName: folder, action: .deleteSelf)),
          ]
        )
      }
    }
    return person
  }

  private func shorten(_ person: Person, _ schema: String) async throws {
    try await person.server.service.schemas.importSchema(schema, container: TestServer.container)
    // The next change of the schema is not held up either.
    try await person.server.service.schemas.importSchema(schema, container: TestServer.container)
  }

  @Test(
    "A removed type is erased with more referrers than a request may delete",
    arguments: [4, 7]
  )
  func cascade(limit: Int) async throws {
    let person = try await world { $0.recordsPerCascade = limit }
    try await shorten(person, Self.withoutFolders)
    #expect(try await person.changes().names.isEmpty)
  }

  @Test("A removed type is erased with more index entries than a request may remove")
  func indexEntries() async throws {
    let person = try await world { $0.linkedRowsPerRequest = 8 }
    try await shorten(person, "DEFINE SCHEMA RECORD TYPE Folder (title STRING QUERYABLE);")
    #expect(try await person.changes().names.sorted() == ["f", "g"])
  }

  @Test("A removed field is erased from more bytes of records than a reply may have")
  func replyBytes() async throws {
    let person = try await world { $0.bytesPerReply = 1500 }
    try await shorten(person, Self.withoutTexts)
    for name in ["f0", "g4"] {
      #expect(try await person.lookup(name).fields?.keys.sorted() == ["title"])
    }
  }

  @Test("A removed type is erased with more records below its own than may leave a share at once")
  func subtree() async throws {
    let person = try await world { $0.recordsPerShareChange = 4 }
    try await person.share("f")
    for number in 0..<5 {
      var operation = RecordOperation.make(.forceUpdate, "f\(number)")
      operation.record.parent = ParentDictionary(recordName: "f")
      _ = try await person.modify([operation])[0].get()
    }
    try await shorten(person, Self.withoutFolders)
    #expect(try await person.changes().names.isEmpty)
  }
}
