import CloudKitServer
import CloudKitWebServices
import Effects
import Foundation
import Testing

/// Files and tokens with a defect; `make fuzz` runs many more rounds.
@Suite("Invalid files, ranges and tokens")
struct FileFuzzTests {
  private let random = SeededRandomness(seed: RequestFuzzTests.seed)
  private static let file = Data((0..<1000).map { UInt8(truncatingIfNeeded: $0 * 7) })

  private func broken(_ text: String) -> String {
    String(decoding: RequestFuzzTests.broken(text, random), as: UTF8.self)
  }

  private func pick<Value>(_ values: [Value]) -> Value {
    values[Int(random.next() % UInt64(values.count))]
  }

  private static let ranges = [
    "bytes=0-5", "bytes=-5", "bytes=5-", "bytes=0-0,3-4", "bytes=998-998", "bytes=999-999",
    "bytes=1000-1000", "bytes=998-1000", "bytes=-1000", "bytes=-1001", "bytes=-0", "bytes=",
    "bytes=18446744073709551615-", "bytes=5-4", "bytes=0-9223372036854775807", "items=0-5",
  ]

  @Test("A range gets its bytes, the whole file, or an error")
  func ranges() async throws {
    let person = try await TestServer().person()
    try await person.makeZone()
    try await person.save(.create, "a", ["file": .asset(try await person.upload(Self.file))])
    let url = try #require(try await person.lookup("a").content("file")?.assets[0].downloadURL)
    for round in 0..<RequestFuzzTests.rounds {
      let range =
        round < Self.ranges.count ? Self.ranges[round] : broken(pick(Self.ranges))
      let response = await person.download(url, headers: ["range": range])
      let note: Comment = "seed \(RequestFuzzTests.seed): \(range)"
      switch response.status {
      case 200: #expect(response.body == Self.file, note)
      case 206:
        let place = try #require(
          response.headers["content-range"]?.firstMatch(of: /^bytes (\d+)-(\d+)\/1000$/),
          note
        )
        let (first, last) = (Int(place.output.1) ?? 0, Int(place.output.2) ?? 0)
        try #require(first <= last && last < 1000, note)
        #expect(response.body == Self.file[first...last], note)
      default:
        #expect(response.status == 416, note)
        #expect(response.headers["content-range"] == "bytes */1000", note)
      }
    }
  }

  @Test("An invalid form is stored as its bytes, or refused")
  func forms() async throws {
    let person = try await TestServer(limits: { $0.assetSize = 300 }).person()
    try await person.makeZone()
    let form = """
      --b\r
      Content-Disposition: form-data; name="files"; filename="f"\r
      Content-Type: application/octet-stream\r
      \r
      the file\r
      --b--\r

      """
    for _ in 0..<RequestFuzzTests.rounds {
      let body = RequestFuzzTests.broken(form, random)
      let type =
        random.next() % 2 == 0
        ? "multipart/form-data; boundary=b"
        : broken(
          "multipart/form-data; boundary=\"b\"; charset=utf-8"
        )
      let response = await person.server.service.respond(
        to: WebServiceRequest(
          method: pick(["POST", "PUT"]),
          // A URL is valid for one file.
          path: try await person.uploadPath(),
          headers: ["content-type": type],
          body: body
        )
      )
      let note: Comment =
        "seed \(RequestFuzzTests.seed): \(type) \(String(decoding: body, as: UTF8.self))"
      #expect([200, 400, 413].contains(response.status), note)
      guard response.status == 200 else { continue }
      let reply = try WireCoding.decode(UploadedFileResponse.self, from: response.body)
      #expect((reply.singleFile.size ?? .max) <= Int64(body.count), note)
    }
  }

  @Test("A file at the limit is accepted, one byte more is not", arguments: [-1, 0, 1])
  func sizes(difference: Int) async throws {
    let person = try await TestServer(limits: { $0.assetSize = 300 }).person()
    try await person.makeZone()
    let file = Data(repeating: 1, count: 300 + difference)
    if difference > 0 {
      await #expect(throws: ErrorDictionary.self) { try await person.upload(file) }
    } else {
      #expect(try await person.upload(file).size == Int64(file.count))
    }
  }

  @Test("Issued tokens that were changed are refused, and cause no failure")
  func tokens() async throws {
    let person = try await TestServer().person()
    try await person.makeZone()
    for name in ["a", "b", "c"] { try await person.save(.create, name, ["n": .int64(1)]) }
    let asset = try await person.upload(Self.file)
    let filter = QueryFilter(comparator: .equals, fieldName: "n", fieldValue: .init(.int64(1)))
    let query = RecordQuery(recordType: "Note", filterBy: [filter])
    let sync = try #require(try await person.changes(limit: 1).syncToken)
    let marker = try #require(try await person.query(query, limit: 1).continuationMarker)
    let receipt = try #require(asset.receipt)
    for _ in 0..<RequestFuzzTests.rounds {
      for (token, body, endpoint) in [
        (
          sync, #"{"zones":[{"zoneID":{"zoneName":"notes"},"syncToken":"$"}]}"#,
          Endpoint.zoneChanges
        ),
        (
          marker,
          #"{"query":{"recordType":"Note","filterBy":[{"comparator":"EQUALS","fieldName":"n","fieldValue":{"value":1}}]},"zoneID":{"zoneName":"notes"},"continuationMarker":"$"}"#,
          .queryRecords
        ),
        (
          receipt,
          #"{"operations":[{"operationType":"forceUpdate","record":{"recordName":"f","recordType":"Note","fields":{"file":{"value":{"receipt":"$"}}}}}],"zoneID":{"zoneName":"notes"}}"#,
          .modifyRecords
        ),
      ] as [(String, String, Endpoint)] {
        let other = broken(token)
        guard other.allSatisfy({ $0.isASCII && $0 != "\"" && $0 != "\\" && $0 >= " " }) else {
          continue
        }
        let response = await person.send(endpoint, Data(body.replacing("$", with: other).utf8))
        #expect(response.status != 500, "seed \(RequestFuzzTests.seed): \(other)")
      }
    }
    // An unchanged receipt may have created one more record.
    #expect(try await person.changes(since: sync).names.starts(with: ["b", "c"]))
  }
}
