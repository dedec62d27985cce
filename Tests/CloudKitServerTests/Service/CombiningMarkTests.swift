import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

/// Long runs of combining marks, which take Swift's `String` n² steps to hash or compare.
@Suite("Runs of combining marks")
struct CombiningMarkTests {
  /// Marks of falling classes, the worst order: sorted when the text is normalized.
  private func marks(_ count: Int) -> String {
    let classes = ["\u{0301}", "\u{0323}", "\u{0327}"]
    return "a" + (0..<count).map { classes[$0 % 3] }.joined()
  }

  private func refusal(_ response: WebServiceResponse) throws -> ErrorDictionary? {
    guard response.status != 200 else { return nil }
    return try WireCoding.decode(ErrorDictionary.self, from: response.body)
  }

  private static let reason =
    "a text has more than 128 combining marks in a row; send it with fewer"

  @Test("Every endpoint refuses a longer run, in names and in texts", arguments: Endpoint.allCases)
  func endpoints(endpoint: Endpoint) async throws {
    let person = try await TestServer().person().extended
    let scope: DatabaseScope? = endpoint.rules.needsDatabase ? .public : nil
    for body in [#"{"\#(marks(20_000))":1}"#, #"{"x":[{"y":"\#(marks(20_000))"}]}"#] {
      // Endpoints without a body ignore it.
      let response = await person.send(endpoint, Data(body.utf8), in: scope)
      guard
        ![.listZones, .listSubscriptions, .caller, .currentUser, .lookupContacts]
          .contains(endpoint)
      else { continue }
      let error = try #require(try refusal(response))
      #expect(error.reason == Self.reason, "\(body.prefix(20))")
      #expect(error.extension?.code == .limitExceeded)
    }
  }

  @Test("A record's text and its replies keep a run at the limit", arguments: [128, 129])
  func limit(count: Int) async throws {
    let person = try await TestServer().person().extended
    try await person.makeZone()
    let text = marks(count)
    let operation = RecordOperation.make(.create, "r", ["t": .string(text)])
    let request = ModifyRecordsRequest(operations: [operation], zoneID: TestServer.zone)
    let response = await person.send(.modifyRecords, try WireCoding.encode(request))
    guard count <= 128 else {
      #expect(try refusal(response)?.reason == Self.reason)
      return
    }
    let found = try await person.lookup("r")
    #expect(found.fields?["t"]?.content == .string(text))
  }

  @Test("An administrator's call and calls about accounts refuse a longer run")
  func calls() async throws {
    let server = try await TestServer()
    for path in ["/account/sign-in", "/account/refresh", "/account/delete"] {
      let response = await server.send(
        "POST",
        path,
        body: Data(#"{"\#(marks(10_000))":1}"#.utf8)
      )
      #expect(try refusal(response)?.reason == Self.reason, "\(path)")
    }
  }

  @Test("A form or a query has no item with a long name or with a longer run")
  func forms() throws {
    let (long, short) = (marks(10_000), marks(20))
    let escaped = try #require(long.addingPercentEncoding(withAllowedCharacters: .alphanumerics))
    for text in ["\(long)=1&b=2", "b=2&b\(long)=1", "c=\(long)&b=2", "\(escaped)=1&b=2"] {
      #expect(RequestTarget.form(text, plusIsSpace: true) == ["b": "2"], "\(text.prefix(8))")
    }
    // An escaped value stays as it was sent, which is ASCII.
    #expect(RequestTarget.form("c=\(escaped)&b=2") == ["c": escaped, "b": "2"])
    #expect(RequestTarget.form("\(short)=\(short)") == [short: short])
    let name = String(repeating: "n", count: 64)
    #expect(RequestTarget.form("\(name)=1&\(name)n=2") == [name: "1"])
    // A part of a path stays as it was sent.
    #expect(RequestTarget("/\(escaped)/b").parts == [escaped, "b"])
  }

  @Test("Names have a limit of bytes before they are decoded")
  func names() async throws {
    let person = try await TestServer().person().extended
    func reason(_ name: String) async throws -> String? {
      let body = #"{"records":[{"recordName":"\#(name)"}]}"#
      return try refusal(await person.send(.lookupRecords, Data(body.utf8)))?.reason
    }
    // 255 characters of twelve bytes each, as two escaped code units.
    #expect(
      try await reason(String(repeating: "n", count: 3060)) != "a name has more than 3060 bytes"
    )
    #expect(
      try await reason(String(repeating: "n", count: 3061)) == "a name has more than 3060 bytes"
    )
    let member = String(repeating: "n", count: 3061)
    let response = await person.send(.lookupRecords, Data(#"{"\#(member)":1}"#.utf8))
    #expect(try refusal(response)?.reason == "a name has more than 3060 bytes")
  }
}
