import CloudKitWebServices
import Foundation
import Synchronization
import Testing

@testable import CloudKitServer

/// A tar archive as a reader of POSIX.1-2001 parses it.
struct TarReader {
  struct Member: Hashable {
    var path: String
    var bytes: Data
  }

  struct Damaged: Error {}

  /// The members up to the end marker.
  static func members(of archive: Data) throws -> [Member] {
    var members: [Member] = []
    var rest = archive[...]
    var records: [String: String] = [:]
    func text(_ head: Data, _ start: Int, _ length: Int) -> String {
      String(decoding: head.dropFirst(start).prefix(length).prefix { $0 != 0 }, as: UTF8.self)
    }
    while true {
      guard rest.count >= 512 else { throw Damaged() }
      let head = Data(rest.prefix(512))
      rest = rest.dropFirst(512)
      if head.allSatisfy({ $0 == 0 }) {
        guard rest.count == 512, rest.allSatisfy({ $0 == 0 }) else { throw Damaged() }
        return members
      }
      var blank = head
      for index in 148..<156 { blank[index] = UInt8(ascii: " ") }
      let sum = blank.reduce(0) { $0 + Int($1) }
      guard text(head, 257, 5) == "ustar", text(head, 263, 2) == "00",
        Int(text(head, 148, 6), radix: 8) == sum,
        var size = Int(text(head, 124, 11), radix: 8)
      else { throw Damaged() }
      let isRecords = head[156] == UInt8(ascii: "x")
      if !isRecords, let long = records["size"].flatMap({ Int($0) }) { size = long }
      guard rest.count >= size else { throw Damaged() }
      let bytes = Data(rest.prefix(size))
      rest = rest.dropFirst((size + 511) / 512 * 512)
      if isRecords {
        records = try Self.records(bytes)
      } else {
        members.append(Member(path: records["path"] ?? text(head, 0, 100), bytes: bytes))
        records = [:]
      }
    }
  }

  private static func records(_ bytes: Data) throws -> [String: String] {
    var found: [String: String] = [:]
    var rest = bytes[...]
    while !rest.isEmpty {
      let digits = rest.prefix { $0 != UInt8(ascii: " ") }
      guard let length = Int(String(decoding: digits, as: UTF8.self)), length <= rest.count else {
        throw Damaged()
      }
      let line = rest.prefix(length).dropFirst(digits.count + 1).dropLast()
      let parts = String(decoding: line, as: UTF8.self).split(separator: "=", maxSplits: 1)
      guard parts.count == 2 else { throw Damaged() }
      found[String(parts[0])] = String(parts[1])
      rest = rest.dropFirst(length)
    }
    return found
  }
}

@Suite("Exporting a user's own data", .everyEngine)
struct AccountExportTests {
  private func link(
    _ server: TestServer,
    _ person: Person,
    password: String = "secret"
  ) async throws -> String {
    let token = WebServicePath.escape(person.webAuthToken ?? "")
    let reply = await server.send(
      "POST",
      "/account/export-data?ckAPIToken=\(server.apiToken)&ckWebAuthToken=\(token)",
      body: Data(#"{"password":"\#(password)"}"#.utf8)
    )
    guard reply.status == 200 else {
      throw try WireCoding.decode(ErrorDictionary.self, from: reply.body)
    }
    let url = try WireCoding.decode(AccountExportLink.self, from: reply.body).url
    return url.replacing("http://127.0.0.1:8080", with: "")
  }

  private func archive(_ server: TestServer, _ person: Person) async throws -> [String: Data] {
    let reply = await server.send("GET", try await link(server, person))
    #expect(reply.status == 200)
    #expect(reply.headers["content-type"] == "application/x-tar")
    #expect(reply.headers["content-disposition"] == "attachment; filename=\"account.tar\"")
    let members = try TarReader.members(of: reply.body)
    #expect(members.last?.path == "complete.json")
    return Dictionary(members.map { ($0.path, $0.bytes) }, uniquingKeysWith: { $1 })
  }

  private func lines(_ data: Data?) throws -> [RecordDictionary] {
    try (data ?? Data()).split(separator: UInt8(ascii: "\n")).map {
      try WireCoding.decode(RecordDictionary.self, from: Data($0))
    }
  }

  @Test(
    "The archive has the account, each zone's records with decrypted fields, and the files"
  )
  func content() async throws {
    let server = try await TestServer()
    let ada = try await server.person()
    let bob = try await server.person("bob")
    try await ada.makeZone()
    try await bob.makeZone()
    try await bob.save(.create, "b", ["text": .string("bob's own words")])
    let bytes = Data((0..<100_001).map { UInt8(truncatingIfNeeded: $0 * 3) })
    let file = try await ada.upload(bytes)
    try await ada.save(.create, "a", ["file": .asset(file), "text": .string("words")])
    let hidden = RecordOperation(
      operationType: .create,
      record: RecordDictionary(
        recordName: "h",
        recordType: "Note",
        fields: ["hidden": FieldValue(.string("open"), isEncrypted: true)]
      )
    )
    _ = try await ada.extended.modify([hidden])[0].get()
    try await ada.save(.create, "gone", ["text": .string("deleted words")])
    try await ada.save(.forceDelete, "gone", recordType: nil)
    try await ada.save(.create, "d", ["text": .string("default")], zone: nil)
    let found = try await archive(server, ada)
    let zone = "containers/iCloud.example/development/zones/notes"
    let records = try lines(found["\(zone)/records-000001.jsonl"])
    #expect(records.map(\.recordName) == ["a", "h"])
    #expect(records[1].content("hidden") == .string("open"))
    let path = try #require(records[0].content("file")?.assets.first?.downloadURL)
    #expect(found["\(zone)/\(path)"] == bytes)
    let ofDefault = "containers/iCloud.example/development/zones/_defaultZone"
    #expect(try lines(found["\(ofDefault)/records-000001.jsonl"]).map(\.recordName) == ["d"])
    let named = try WireCoding.decode(ZoneID.self, from: try #require(found["\(zone)/zone.json"]))
    #expect(named.zoneName == "notes")
    let account = String(decoding: try #require(found["account.json"]), as: UTF8.self)
    #expect(account.contains("ada@example.com"))
    #expect(
      String(decoding: found["audit.jsonl"] ?? Data(), as: UTF8.self).contains("account.export")
    )
    let summary = try WireCoding.decode(
      AccountExport.Summary.self,
      from: try #require(found["complete.json"])
    )
    #expect(summary == AccountExport.Summary(records: 3, files: 1))
    for (name, data) in found {
      let text = String(decoding: data, as: UTF8.self)
      #expect(!text.contains("bob"), "\(name)")
      #expect(!text.contains("deleted words"), "\(name)")
    }
  }

  @Test(
    "A zone of many records is read in pages, each record once, with one page in memory at a time"
  )
  func pages() async throws {
    let server = try await TestServer()
    let ada = try await server.person()
    try await ada.makeZone()
    let text = String(repeating: "x", count: 10_000)
    for start in stride(from: 0, to: 450, by: 150) {
      let operations = (start..<start + 150).map {
        RecordOperation.make(.create, "r\($0)", ["text": .string($0 < 100 ? text : "short")])
      }
      for item in try await ada.modify(operations) { _ = try item.get() }
    }
    let reply = try await server.service.exports.download(
      WebServiceRequest(method: "GET", path: try await link(server, ada))
    )
    guard case .stream(nil, let read) = reply.body else {
      Issue.record("the archive has a length before its end")
      return
    }
    let pieces = Mutex<[Data]>([])
    try await read { piece in pieces.withLock { $0.append(piece) } }
    let all = pieces.withLock { $0 }
    #expect((all.map(\.count).max() ?? 0) < 300_000)
    let members = try TarReader.members(of: Data(all.joined()))
    let pages = members.filter { $0.path.contains("/notes/records-") }
    #expect(pages.count > 4)
    let names = try pages.flatMap { try lines($0.bytes) }.compactMap(\.recordName)
    #expect(names == (0..<450).map { "r\($0)" })
  }

  @Test("Names of apps and zones become path components that leave no folder")
  func paths() async throws {
    let server = try await TestServer()
    let ada = try await server.person()
    let long = String(repeating: "a b", count: 85)
    let names = ["..", ".", "a/../b", "a b", long]
    for name in names { try await ada.makeZone(name) }
    let found = try await archive(server, ada)
    let folder = "containers/iCloud.example/development/zones/"
    let zones = found.keys.filter { $0.hasPrefix(folder) && $0.hasSuffix("/zone.json") }
    #expect(zones.count == names.count + 1)
    for path in found.keys {
      for part in path.split(separator: "/", omittingEmptySubsequences: false) {
        #expect(![".", "..", ""].contains(part))
        #expect(part.utf8.count <= 255)
      }
    }
    #expect(zones.contains { $0.utf8.count > 100 })
    let kept = try zones.map {
      try WireCoding.decode(ZoneID.self, from: found[$0] ?? Data()).zoneName
    }
    #expect(Set(kept) == Set(names + [ZoneID.defaultZoneName]))
  }

  @Test("The link requires the password, is valid once, and ends with its time and the password")
  func link() async throws {
    let server = try await TestServer()
    let ada = try await server.person()
    await #expect(throws: ErrorDictionary.self) {
      try await link(server, ada, password: "wrong")
    }
    let first = try await link(server, ada)
    let second = try await link(server, ada)
    // The last link is the valid one.
    #expect(await server.send("GET", first).status == 403)
    #expect(await server.send("POST", second).status == 404)
    #expect(await server.send("GET", second).status == 200)
    #expect(await server.send("GET", second).status == 403)
    #expect(await server.send("GET", "/account-data/x").status == 403)
    #expect(await server.send("GET", "/account-data").status == 404)
    let late = try await link(server, ada)
    server.clock.advance(seconds: 15 * 60)
    #expect(await server.send("GET", late).status == 403)
    let other = try await link(server, try await server.person())
    try await server.service.accounts.change("ada", .init(password: "another"))
    #expect(await server.send("GET", other).status == 403)
  }

  @Test("The archive has no audit line of the operator or of a former account with the same name")
  func audit() async throws {
    let server = try await TestServer(administratorToken: "operator's token")
    for name in ["operator", "ada"] { _ = try await server.person(name) }
    _ = await server.service.respond(
      to: WebServiceRequest(
        method: "POST",
        path: "/admin/1/users/update",
        headers: ["authorization": "Bearer operator's token"],
        body: Data(#"{"userName":"ada","changes":{"givenName":"Ada of the operator"}}"#.utf8)
      )
    )
    let written = try await server.service.auditLog.lines(AuditQuery(account: "operator")).lines
    #expect(written.contains { $0.by == "operator" && $0.action.hasPrefix("user.") })
    let found = try await archive(server, try await server.person("operator"))
    let text = String(decoding: try #require(found["audit.jsonl"]), as: UTF8.self)
    #expect(text.contains("account.export"))
    #expect(!text.contains("\"user."))
    // The lines of the former account are kept for the operator only.
    _ = try await archive(server, try await server.person("ada"))
    try await server.service.accounts.delete("ada", purgesNow: true)
    let next = try await archive(server, try await server.person("ada"))
    let lines = String(decoding: try #require(next["audit.jsonl"]), as: UTF8.self)
    #expect(lines.components(separatedBy: "account.export").count == 2)
  }

  @Test("An account has one download at a time, and the server a limited number")
  func running() {
    let running = RunningExports()
    var limits = ServiceLimits()
    limits.runningExports = 2
    func begin(_ account: String) -> RunningExports.Slot? {
      running.begin(account, from: nil, limits, now: 0)
    }
    var first = begin("a")
    #expect(first != nil)
    #expect(begin("a") == nil)
    let second = begin("b")
    #expect(second != nil)
    #expect(begin("c") == nil)
    first = nil
    #expect(first == nil)
    #expect(begin("c") != nil)
    withExtendedLifetime(second) {}
  }

  @Test("A download that is refused because another one runs does not use the link up")
  func refused() async throws {
    let server = try await TestServer()
    let ada = try await server.person()
    func open(_ path: String) async throws -> StreamedResponse {
      try await server.service.exports.download(WebServiceRequest(method: "GET", path: path))
    }
    var running: StreamedResponse? = try await open(try await link(server, ada))
    #expect(running != nil)
    let second = try await link(server, ada)
    let error = await #expect(throws: ErrorDictionary.self) { try await open(second) }
    #expect(error?.serverErrorCode == .tryAgainLater)
    #expect(error?.retryAfter == 60)
    // A response that is dropped before its archive begins releases its slot.
    running = nil
    #expect(await server.send("GET", second).status == 200)
    #expect(await server.send("GET", try await link(server, ada)).status == 200)
  }

  @Test("A site has half of the places for downloads, for all its users together")
  func shareOfASite() async throws {
    let server = try await TestServer(limits: { $0.runningExports = 4 })
    func open(_ name: String, from address: String) async throws -> StreamedResponse {
      let path = try await link(server, try await server.person(name))
      return try await server.service.exports.download(
        WebServiceRequest(method: "GET", path: path, clientAddress: address)
      )
    }
    let first = try await open("a", from: "2001:db8:0:1::1")
    let second = try await open("b", from: "2001:db8:0:2::1")
    let error = await #expect(throws: ErrorDictionary.self) {
      try await open("c", from: "2001:db8:0:3::1")
    }
    #expect(error?.serverErrorCode == .tryAgainLater)
    let third = try await open("d", from: "192.0.2.1")
    let fourth = try await open("e", from: "192.0.2.2")
    await #expect(throws: ErrorDictionary.self) { try await open("f", from: "192.0.2.3") }
    withExtendedLifetime((first, second, third, fourth)) {}
  }

  @Test("A download that its client does not take gives its place to one that asks, and ends")
  func slowReader() async throws {
    let server = try await TestServer(limits: { $0.runningExports = 1 })
    let ada = try await server.person()
    let bob = try await server.person("bob")
    @Sendable func open(_ person: Person) async throws -> StreamedResponse {
      let path = try await link(server, person)
      return try await server.service.exports.download(WebServiceRequest(method: "GET", path: path))
    }
    let slow = try await open(ada)
    guard case .stream(nil, let read) = slow.body else {
      Issue.record("the archive has a length before its end")
      return
    }
    let count = Mutex(0)
    let early = Mutex<StreamedResponse?>(nil)
    let other = Mutex<StreamedResponse?>(nil)
    let error = await #expect(throws: ErrorDictionary.self) {
      try await read { _ in
        let number = count.withLock { count in
          count += 1
          return count
        }
        if number == 1 {
          // No piece has waited yet: it keeps its slot.
          let opened = try? await open(bob)
          early.withLock { $0 = opened }
        } else {
          server.clock.advance(seconds: 60)
          let opened = try await open(bob)
          other.withLock { $0 = opened }
        }
      }
    }
    #expect(error?.serverErrorCode == .tryAgainLater)
    #expect(count.withLock { $0 } == 2)
    #expect(early.withLock { $0 == nil })
    #expect(other.withLock { $0 != nil })
    // The slot that was lost is not released a second time.
    withExtendedLifetime(slow) {}
    await #expect(throws: ErrorDictionary.self) { try await open(ada) }
    withExtendedLifetime(other.withLock { $0 }) {}
  }

  @Test("The pace of a client counts the time that pieces wait for it, and nothing else")
  func pace() {
    var pace = ExportPace()
    // The storage takes its time between two pieces.
    pace.begin(now: 0)
    pace.end(100, now: 1)
    #expect(!pace.isSlow(leastRate: 10, now: 1000))
    pace.begin(now: 1000)
    #expect(!pace.isSlow(leastRate: 10, now: 1028))
    #expect(pace.isSlow(leastRate: 10, now: 1029))
    #expect(!pace.isSlow(leastRate: 3, now: 1029))
    // 1,100 bytes in 30 seconds.
    pace.end(1000, now: 1029)
    #expect(!pace.isSlow(leastRate: 36, now: 2000))
    #expect(pace.isSlow(leastRate: 37, now: 2000))
    pace.begin(now: 2000)
    pace.end(100_000, now: 2030)
    #expect(!pace.isSlow(leastRate: 37, now: 3000))
  }

  @Test(
    "A download ends between two pages when the account is disabled or its password changes",
    arguments: [
      AccountChanges(password: "another"),
      AccountChanges(isDisabled: true),
    ]
  )
  func revoked(_ change: AccountChanges) async throws {
    let server = try await TestServer()
    let ada = try await server.person()
    try await ada.makeZone()
    try await ada.save(.create, "a", ["text": .string("words of the record")])
    let reply = try await server.service.exports.download(
      WebServiceRequest(method: "GET", path: try await link(server, ada))
    )
    guard case .stream(nil, let read) = reply.body else {
      Issue.record("the archive has a length before its end")
      return
    }
    let pieces = Mutex(Data())
    let isChanged = Mutex(false)
    await #expect(throws: ErrorDictionary.self) {
      try await read { piece in
        pieces.withLock { $0 += piece }
        let isFirst = isChanged.withLock { flag in
          defer { flag = true }
          return !flag
        }
        if isFirst { try await server.service.accounts.change("ada", change) }
      }
    }
    let text = String(decoding: pieces.withLock { $0 }, as: UTF8.self)
    #expect(text.contains("README.txt"))
    #expect(!text.contains("words of the record"))
  }

  @Test("On the page the password gives a link to the data, and deletes the account")
  func page() async throws {
    let server = try await TestServer()
    let ada = try await server.person()
    let opened = await server.postMyAccount("user=ada&password=secret").html
    let session = try #require(
      opened.firstMatch(of: /name="session" type="hidden" value="([^"]+)"/)?.1
    )
    #expect(await server.postMyAccount("session=\(session)&do=export&password=wrong").status == 401)
    let ready = await server.postMyAccount("session=\(session)&do=export&password=secret").html
    let path = try #require(
      ready.firstMatch(of: /href="http:\/\/127.0.0.1:8080(\/account-data\/[^"]+)"/)?.1
    )
    #expect(await server.send("GET", String(path)).status == 200)
    #expect(await server.postMyAccount("session=\(session)&do=delete&password=wrong").status == 401)
    #expect(await ada.send(.listZones, Data("{}".utf8)).status == 200)
    #expect(
      await server.postMyAccount("session=\(session)&do=delete&password=secret").status == 200
    )
    #expect(await ada.send(.listZones, Data("{}".utf8)).status != 200)
    #expect(await server.postMyAccount("user=ada&password=secret").status == 401)
    let lines = try await server.service.auditLog.lines(AuditQuery(kind: "account")).lines
    #expect(lines.map(\.action).sorted() == ["account.delete", "account.export"])
  }
}
