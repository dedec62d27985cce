import CloudKitWebServices
import Foundation
import Testing

@testable import WatershedCommands

/// `create` and `update` read what `records get` and `query` print, for every type of field.
@Suite("Records as JSON")
struct RecordInputTests {
  private static let place = [
    "--container-id", "iCloud.a", "--environment", "development", "--database-type", "private",
    "--user", "demo",
  ]

  @Test("Each member of a record is read, ignored or refused")
  func members() {
    let known = [RecordInput.accepted, RecordInput.ignored, RecordInput.sharing]
    #expect(known.reduce(into: []) { $0.formUnion($1) } == Set(RecordMember.allCases))
    #expect(known.map(\.count).reduce(0, +) == RecordMember.allCases.count)
  }

  /// A server's folder and a function that runs `records` on it.
  private struct World {
    var data: String

    func run(
      _ verb: String,
      _ arguments: [String],
      input: String? = nil
    ) async throws -> CommandProcess.Outcome {
      try await CommandProcess(
        ["records", verb, "--data", data] + RecordInputTests.place + arguments,
        environment: ["TZ": "America/New_York"],
        input: input
      ).finish()
    }

    func fields(_ name: String) async throws -> [String: [String: Any]] {
      let outcome = try await run("get", ["--record-name", name])
      try #require(outcome.exitCode == 0, "\(outcome.errors)")
      return try Self.fields(outcome.output)
    }

    /// The fields of a printed record; the file's URL changes with each read.
    static func fields(_ text: String) throws -> [String: [String: Any]] {
      let record = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
      var fields = try #require(record?["fields"] as? [String: [String: Any]])
      for (name, field) in fields {
        func plain(_ value: Any) -> Any {
          if var asset = value as? [String: Any], asset["downloadURL"] != nil {
            asset["downloadURL"] = nil
            return asset
          }
          return (value as? [Any])?.map(plain) ?? value
        }
        fields[name]?["value"] = field["value"].map(plain)
      }
      return fields
    }
  }

  private func withWorld(_ body: (World) async throws -> Void) async throws {
    try await withTemporaryFolder { folder in
      let data = folder.appendingPathComponent("data").path
      let server = try CommandProcess(
        "serve",
        "--json",
        "--port",
        "0",
        "--data",
        data,
        "--container",
        "iCloud.a",
        "--allow-unindexed-queries"
      )
      _ = try #require(try await server.nextLine())
      try await body(World(data: data))
      server.terminate()
      _ = try await server.finish()
    }
  }

  private static let location =
    #"{"latitude":48.2,"longitude":16.4,"altitude":171.5,"horizontalAccuracy":5,"#
    + #""verticalAccuracy":3.5,"speed":1.25,"course":90,"timestamp":1700000000000}"#
  private static let reference =
    #"{"recordName":"target","action":"DELETE_SELF","zoneID":{"zoneName":"_defaultZone"}}"#

  /// Values by the type's name on the wire.
  private static let values: [(type: String, value: String)] = [
    ("STRING", #""text""#), ("INT64", "9007199254740993"), ("DOUBLE", "0.1"),
    ("TIMESTAMP", "1700000000001"), ("BYTES", #""AQID""#), ("LOCATION", location),
  ]

  /// One field for each type, plain and encrypted, single and in lists.
  private static var everyField: String {
    var fields: [String] = []
    for (type, value) in values {
      let name = type.lowercased()
      for (suffix, extra) in [("", ""), ("Sealed", #","isEncrypted":true"#)] {
        fields.append(#""\#(name)\#(suffix)":{"type":"\#(type)","value":\#(value)\#(extra)}"#)
        fields.append(
          #""\#(name)List\#(suffix)":{"type":"\#(type)_LIST","value":[\#(value),\#(value)]\#(extra)}"#
        )
      }
    }
    let exact = #""secondsSince2001":700000000.1234567,"#
    fields.append(#""exact":{\#(exact)"type":"TIMESTAMP","value":1678307200123}"#)
    fields.append(
      #""exactSealed":{\#(exact)"type":"TIMESTAMP","value":1678307200123,"isEncrypted":true}"#
    )
    fields.append(#""reference":{"type":"REFERENCE","value":\#(reference)}"#)
    fields.append(#""references":{"type":"REFERENCE_LIST","value":[\#(reference)]}"#)
    fields.append(#""file":{"type":"ASSETID","value":"image"}"#)
    fields.append(#""files":{"type":"ASSETID_LIST","value":["image","image"]}"#)
    return "{" + fields.joined(separator: ",") + "}"
  }

  @Test("A record with a field of every type is read, printed, copied and updated unchanged")
  func roundTrip() async throws {
    try await withWorld { world in
      let image = URL(fileURLWithPath: world.data).appendingPathComponent("image")
      try Data([1, 2, 3]).write(to: image)
      let note = ["--record-type", "Note"]
      let target = try await world.run(
        "create",
        note + ["--record-name", "target", "--fields-json", "{}"]
      )
      try #require(target.exitCode == 0, "\(target.errors)")
      let made = try await world.run(
        "create",
        note + ["--record-name", "a", "--fields-stdin", "--asset-files", "image=\(image.path)"],
        input: Self.everyField
      )
      try #require(made.exitCode == 0, "\(made.errors)")
      let first = try await world.fields("a")
      #expect(first.count == Self.values.count * 4 + 6)
      for name in ["exact", "exactSealed"] {
        #expect(first[name]?["secondsSince2001"] as? Double == 700_000_000.123_456_7)
      }
      let location = first["location"]?["value"] as? [String: Any]
      #expect(location?["altitude"] as? Double == 171.5)
      let reference = first["reference"]?["value"] as? [String: Any]
      #expect(reference?["action"] as? String == "DELETE_SELF")
      #expect((reference?["zoneID"] as? [String: Any])?["zoneName"] as? String == "_defaultZone")
      #expect(first["int64"]?["value"] as? Int64 == 9_007_199_254_740_993)

      let printed = try await world.run("get", ["--record-name", "a"]).output
      let copied = try await world.run(
        "create",
        ["--record-name", "b", "--fields-stdin"],
        input: printed
      )
      try #require(copied.exitCode == 0, "\(copied.errors)")
      #expect(try await world.fields("b") as NSDictionary == first as NSDictionary)
      // The printed change tag is valid, and only once.
      let updated = try await world.run("update", ["--fields-stdin"], input: printed)
      try #require(updated.exitCode == 0, "\(updated.errors)")
      #expect(try await world.fields("a") as NSDictionary == first as NSDictionary)
      let late = try await world.run("update", ["--fields-stdin"], input: printed)
      #expect(late.exitCode == 1)
      #expect(late.errors.contains("[CONFLICT]"), "\(late.errors)")
      let found = try await world.run(
        "query",
        note + ["--filters", "string == text", "--output", "ndjson"]
      )
      let line = try #require(found.output.split(separator: "\n").first.map(String.init))
      #expect(try World.fields(line).count == first.count, "\(found.errors)")
      let third = try await world.run(
        "create",
        ["--record-name", "c", "--fields-stdin"],
        input: line
      )
      #expect(third.exitCode == 0, "\(third.errors)")
    }
  }

  @Test(
    "Unknown input is refused by its name",
    arguments: [
      (#"{"a":{"type":"stringType","value":"x","unit":"m"}}"#, "a.unit"),
      (#"{"a":{"type":"textType","value":"x"}}"#, "'textType'"),
      (#"{"a":{"value":"x"}}"#, "a: a type is missing"),
      (#"{"a":{"type":"int64ListType","value":[1,"x"]}}"#, "a[1]"),
      (#"{"a":{"type":"stringListType","value":["x",1]}}"#, "a[1]"),
      (
        #"{"a":{"type":"locationType","value":{"latitude":1,"longitude":2,"height":3}}}"#,
        "a.height"
      ),
      (
        #"{"a":{"type":"referenceType","value":{"recordName":"r","action":"CASCADE"}}}"#,
        "'CASCADE'"
      ),
      (#"{"a":{"type":"bytesType","value":"?"}}"#, "BYTES"),
      (#"{"recordType":"Note","fields":{},"owner":"x"}"#, "record.owner"),
      (#"{"recordType":"Note","fields":{},"share":{"recordName":"s"}}"#, "share"),
    ]
  )
  func refusals(fields: String, name: String) async throws {
    // The input is parsed before a server is contacted.
    let outcome = try await CommandProcess(
      ["records", "create", "--data", "/nowhere"] + Self.place
        + ["--record-type", "Note", "--fields-json", fields]
    ).finish()
    #expect(outcome.exitCode == 64)
    #expect(outcome.errors.contains(name), "\(outcome.errors)")
  }

  @Test("cktool's filters: lists, circles and dates in the machine's time zone")
  func filters() async throws {
    try await withWorld { world in
      let fields =
        #"{"tags":{"type":"stringListType","value":["a","b"]},"#
        + #""pages":{"type":"int64Type","value":5},"price":{"type":"doubleType","value":5},"#
        + #""place":{"type":"locationType","value":{"latitude":48.2,"longitude":16.4}},"#
        + #""day":{"type":"timestampType","value":"2024-03-01T05:00:00Z"}}"#
      let made = try await world.run(
        "create",
        ["--record-type", "Book", "--fields-json", fields]
      )
      try #require(made.exitCode == 0, "\(made.errors)")
      for (filter, count) in [
        ("tags LIST_CONTAINS_ANY a,x", 1), ("tags LIST_NOT_CONTAINS_ANY a,x", 0),
        (#"tags LIST_CONTAINS_ALL ["a","b"]"#, 1), ("tags LIST_CONTAINS b", 1),
        ("pages IN 4,5", 1), ("pages NOT_IN 4,5", 0), ("price == 5", 1), ("price > 4.60", 1),
        ("place NEAR 48.2,16.4,100", 1), ("place NEAR 10,16.4,100", 0),
        ("day == 2024-03-01", 1), ("day == 03/01/2024", 1), ("day == 2024-03-01 01:00", 0),
        ("pages IN int64Type:5,6", 1), ("tags LIST_CONTAINS_ANY stringListType:b", 1),
      ] {
        let found = try await world.run("query", ["--record-type", "Book", "--filters", filter])
        #expect(found.exitCode == 0, "\(filter): \(found.errors)")
        let object = try JSONSerialization.jsonObject(with: Data(found.output.utf8))
        let records = (object as? [String: Any])?["records"] as? [Any]
        #expect(records?.count == count, "\(filter)")
      }
      for filter in ["place NEAR 48.2,16.4", "pages LIKE 5", "pages"] {
        let found = try await world.run("query", ["--record-type", "Book", "--filters", filter])
        #expect(found.exitCode == 64, "\(filter): \(found.errors)")
      }
    }
  }
}
