import Foundation
import Testing

@testable import CloudKitWebServices

@Suite("The schema language")
struct SchemaLanguageTests {
  /// The folder of collected schema files, if there is one.
  static let corpus: [URL] = {
    var folders: [URL] = []
    if let shared = ProcessInfo.processInfo.environment["WATERSHED_SHARED"] {
      folders.append(URL(fileURLWithPath: shared).appendingPathComponent("corpus/ckdb"))
    }
    var folder = URL(fileURLWithPath: #filePath)
    while folder.pathComponents.count > 1 {
      folder.deleteLastPathComponent()
      folders.append(folder.appendingPathComponent("shared/corpus/ckdb"))
    }
    for folder in folders {
      let files = try? FileManager.default.contentsOfDirectory(
        at: folder,
        includingPropertiesForKeys: nil
      )
      if let files {
        return files.filter { $0.pathExtension == "ckdb" }.sorted { $0.path < $1.path }
      }
    }
    return []
  }()

  /// Files written or reordered by hand: they parse, but an export prints them differently.
  static let handWritten = [
    "MistKit", "JavaScript_src_sample", "coins_v2", "coins_v1",
  ]

  @Test(
    "Every collected file parses, and an exported one is written again byte for byte",
    .enabled(if: !corpus.isEmpty, "the corpus of schema files is not on this machine"),
    arguments: corpus
  )
  func corpusFile(file: URL) throws {
    let text = try String(contentsOf: file, encoding: .utf8)
    let schema = try DatabaseSchema(ckdb: text)
    #expect(!schema.recordTypes.isEmpty)
    #expect(try DatabaseSchema(ckdb: schema.ckdb).ckdb == schema.ckdb)
    if !Self.handWritten.contains(where: file.lastPathComponent.contains) {
      // One file of the corpus ends with an additional empty line.
      #expect(schema.ckdb == text || schema.ckdb + "\n" == text)
    }
  }

  @Test("Comments, quoted names and keywords of any case are read")
  func leniency() throws {
    let schema = try DatabaseSchema(
      ckdb: """
        define schema // one
        -- two
        create role editors; /* three
        lines */
        RECORD TYPE "Odd name" ("grant" STRING queryable, n NUMBER PREFERRED AS DOUBLE,
          l LIST<ENCRYPTED STRING>, GRANT READ, CREATE TO editors, GRANT WRITE TO editors);
        RECORD TYPE Empty ();
        """
    )
    #expect(schema.roles == ["editors"])
    let type = try #require(schema[recordType: "Odd name"])
    #expect(type[field: "grant"]?.indexes == [.queryable])
    #expect(type[field: "n"]?.type == .number(preferred: .double))
    #expect(type[field: "l"]?.type == .typed(.stringList, isEncrypted: true))
    #expect(type.grants == [SchemaGrant(role: "editors", permissions: [.read, .create, .write])])
    #expect(
      schema.ckdb == """
        DEFINE SCHEMA

            CREATE ROLE editors;

            RECORD TYPE Empty (
            );

            RECORD TYPE "Odd name" (
                "grant" STRING QUERYABLE,
                l       LIST<ENCRYPTED STRING>,
                n       NUMBER PREFERRED AS DOUBLE,
                GRANT READ, CREATE, WRITE TO editors
            );

        """
    )
  }

  @Test(
    "A schema error is reported with its line and column",
    arguments: [
      ("", 1, 1), ("DEFINE", 1, 7), ("DEFINE SCHEMA\nX", 2, 1),
      ("DEFINE SCHEMA\nRECORD TYPE A (\n  f BADTYPE\n);", 3, 5),
      ("DEFINE SCHEMA RECORD TYPE A (f STRING,);", 1, 39),
      ("DEFINE SCHEMA RECORD TYPE A (f STRING, f STRING);", 1, 40),
      ("DEFINE SCHEMA RECORD TYPE A (\"f STRING);", 1, 30),
      ("DEFINE SCHEMA RECORD TYPE A (f ENCRYPTED ASSET);", 1, 42),
      ("DEFINE SCHEMA RECORD TYPE A (\"___etag\" INT64);", 1, 30),
      ("DEFINE SCHEMA RECORD TYPE A (GRANT DELETE TO x);", 1, 36),
      ("DEFINE SCHEMA RECORD TYPE A ()", 1, 31),
      ("DEFINE SCHEMA /* x", 1, 15),
      ("DEFINE SCHEMA RECORD TYPE A (f LIST<LIST<STRING>>);", 1, 37),
    ]
  )
  func mistakes(text: String, line: Int, column: Int) throws {
    let error = #expect(throws: SchemaSyntaxError.self) { try DatabaseSchema(ckdb: text) }
    #expect(error?.line == line)
    #expect(error?.column == column)
  }

  @Test(
    "A schema error has the format of a generated parser",
    arguments: [
      (
        "DEFINE SCHEMA RECORD TYPE A (f BADTYPE);",
        """
        Encountered " <IDENTIFIER> "BADTYPE "" at line 1, column 32.
        Was expecting one of:
            "LIST" ...
            "ASSET" ...
            "BYTES" ...
            "DOUBLE" ...
            "ENCRYPTED" ...
            "INT64" ...
            "LOCATION" ...
            "NUMBER" ...
            "REFERENCE" ...
            "STRING" ...
            "TIMESTAMP" ...

        """
      ),
      (
        "DEFINE SCHEMA RECORD TYPE A ()",
        "Encountered \"<EOF>\" at line 1, column 31.\nWas expecting:\n    \";\" ...\n"
      ),
      (
        "DEFINE SCHEMA RECORD TYPE A (f STRING) GRANT",
        "Encountered \" \"GRANT\" \"GRANT \"\" at line 1, column 40.\nWas expecting:\n    \";\" ...\n"
      ),
      ("DEFINE SCHEMA @", "Lexical error at line 1, column 15.  Encountered: \"@\""),
      (
        "DEFINE SCHEMA RECORD TYPE A (f STRING, f STRING);",
        "Duplicate field 'f' in record type 'A' at line 1, column 40."
      ),
    ]
  )
  func words(text: String, message: String) {
    let error = #expect(throws: SchemaSyntaxError.self) { try DatabaseSchema(ckdb: text) }
    #expect(error?.description == message)
  }

  @Test("A schema round-trips through JSON")
  func json() throws {
    let schema = DatabaseSchema(
      roles: ["r"],
      recordTypes: [
        .users,
        .new(
          "T",
          fields: [
            FieldSchema(name: "a", type: .typed(.assetList)),
            FieldSchema(name: "s", type: .typed(.string, isEncrypted: true)),
            FieldSchema(name: "n", type: .number(preferred: nil), indexes: [.sortable]),
          ]
        ),
      ]
    )
    let data = try WireCoding.encode(schema)
    #expect(try WireCoding.decode(DatabaseSchema.self, from: data) == schema)
  }
}
