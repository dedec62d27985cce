import CloudKitWebServices
import Foundation
import Synchronization
import Testing

@testable import CloudKitServer

/// Quotas of rows, long names and records without fields.
@Suite("Quotas of rows, names and empty records", .everyEngine)
struct QuotaTests {
  @Test("Records without a field count for the quota")
  func emptyRecords() async throws {
    let server = try await TestServer(limits: { $0.userQuota = 30_000 })
    let ada = try await server.person()
    try await ada.makeZone()
    _ = try await ada.modify((0..<200).map { .make(.create, "r\($0)") })
    server.clock.advance(seconds: 61)
    #expect(await create("one-more", ada).status == 413)
    _ = try await ada.modify((0..<200).map { .make(.forceDelete, "r\($0)") })
    // Tombstones are kept for clients that have not seen the deletions yet; they count too.
    server.clock.advance(seconds: 61)
    #expect(await create("one-more", ada).status == 413)
  }

  private func create(_ name: String, _ person: Person) async -> WebServiceResponse {
    let request = ModifyRecordsRequest(
      operations: [.make(.create, name)],
      zoneID: TestServer.zone
    )
    return await person.send(.modifyRecords, (try? WireCoding.encode(request)) ?? Data())
  }

  @Test("Zones count for the quota, including deleted ones")
  func zones() async throws {
    let server = try await TestServer(limits: { $0.userQuota = 3000 })
    let ada = try await server.person()
    var made = 0
    let failure = await #expect(throws: ErrorDictionary.self) {
      for number in 0..<100 {
        try await ada.makeZone("z\(number)")
        try await ada.deleteZone("z\(number)")
        server.clock.advance(seconds: 61)
        made = number + 1
      }
    }
    #expect(failure?.serverErrorCode == .quotaExceeded)
    #expect((5...20).contains(made))
  }

  @Test("A full database returns the zone that it has, and takes no other one")
  func zoneOfFullDatabase() async throws {
    let server = try await TestServer(limits: { $0.userQuota = 30_000 })
    let ada = try await server.person()
    try await ada.makeZone()
    _ = try await ada.modify((0..<200).map { .make(.create, "r\($0)") })
    server.clock.advance(seconds: 61)
    let failure = await #expect(throws: ErrorDictionary.self) { try await ada.makeZone("other") }
    #expect(failure?.serverErrorCode == .quotaExceeded)
    // As each new device of its user does.
    try await ada.makeZone()
  }

  @Test("Empty files count for the quota")
  func emptyFiles() async throws {
    let server = try await TestServer(limits: { $0.userQuota = 100_000 })
    let ada = try await server.person()
    try await ada.makeZone()
    var made = 0
    let failure = await #expect(throws: ErrorDictionary.self) {
      for number in 0..<100 {
        _ = try await ada.upload(Data())
        made = number + 1
      }
    }
    #expect(failure?.serverErrorCode == .quotaExceeded)
    #expect((10...30).contains(made))
  }

  @Test("A used upload URL writes nothing, regardless of the body")
  func usedURL() async throws {
    let store = CountingAssetStore()
    let server = try await TestServer(assetStore: store)
    let ada = try await server.person()
    try await ada.makeZone()
    let path = try await ada.uploadPath()
    let file = Data((0..<5000).map { UInt8(truncatingIfNeeded: $0) })
    let first = await server.send("POST", path, body: file)
    #expect(first.status == 200)
    #expect(store.begun == 1)
    // The same file again: its reply was lost.
    let again = await server.send("POST", path, body: file)
    #expect(again.status == 200)
    #expect(try checksum(again) == checksum(first))
    for other in [Data(), file.dropLast(), file + [1], Data(count: 5000), Data(count: 3_000_000)] {
      #expect(await server.send("POST", path, body: Data(other)).status == 403)
    }
    #expect(store.begun == 1)
  }

  private func checksum(_ response: WebServiceResponse) throws -> String? {
    try WireCoding.decode(UploadedFileResponse.self, from: response.body).singleFile.fileChecksum
  }

  @Test("Uploads count as requests of their user")
  func uploadRate() async throws {
    let server = try await TestServer(limits: {
      $0.requestsPerSecond = 1
      $0.requestBurst = 8
    })
    let ada = try await server.person()
    // Three requests: a zone and two URLs; five are left.
    try await ada.makeZone()
    let paths = [try await ada.uploadPath(), try await ada.uploadPath()]
    var statuses: [Int] = []
    for round in 0..<6 {
      statuses.append(await server.send("POST", paths[round % 2], body: Data([1])).status)
    }
    #expect(statuses == [200, 200, 200, 200, 200, 429])
    server.clock.advance(seconds: 2)
    #expect(await server.send("POST", paths[0], body: Data([1])).status == 200)
  }

  @Test("The upload rate also counts uploads to used URLs")
  func uploadedBytes() async throws {
    let server = try await TestServer(limits: {
      $0.uploadBytesPerSecond = 1000
      $0.uploadBurst = 5000
    })
    let ada = try await server.person()
    let bob = try await server.person("bob")
    for person in [ada, bob] { try await person.makeZone() }
    let path = try await ada.uploadPath()
    var statuses: [Int] = []
    for _ in 0..<3 {
      statuses.append(await server.send("POST", path, body: Data(count: 4000)).status)
    }
    #expect(statuses == [200, 200, 429])
    // 3,000 bytes over what the person has: a new address waits as long.
    let refused = await server.send("POST", try await ada.uploadPath(), body: Data([1]))
    #expect(refused.status == 429)
    #expect(refused.headers["retry-after"] == "4")
    #expect(await server.send("POST", try await bob.uploadPath(), body: Data([1])).status == 200)
    server.clock.advance(seconds: 4)
    #expect(await server.send("POST", try await ada.uploadPath(), body: Data([1])).status == 200)
  }

  @Test("One person fills no more than a share of a public database, and others can still write")
  func publicShare() async throws {
    let server = try await TestServer(limits: { $0.publicUserQuota = 30_000 })
    let ada = try await server.person()
    let bob = try await server.person("bob")
    func create(_ names: [String], _ person: Person) async throws -> WebServiceResponse {
      let request = ModifyRecordsRequest(
        operations: names.map { .make(.create, $0, ["text": .string("0123456789")]) }
      )
      return await person.send(.modifyRecords, try WireCoding.encode(request), in: .public)
    }
    #expect(try await create((0..<60).map { "a\($0)" }, ada).status == 200)
    #expect(try await create((0..<60).map { "b\($0)" }, bob).status == 200)
    server.clock.advance(seconds: 61)
    #expect(try await create((60..<160).map { "a\($0)" }, ada).status == 200)
    server.clock.advance(seconds: 61)
    #expect(try await create(["one-more"], ada).status == 413)
    #expect(try await create(["b-more"], bob).status == 200)
    // Deletions are accepted by a full database and lower its usage.
    _ = try await ada.modify(
      (0..<100).map { .make(.forceDelete, "a\($0)") },
      in: .public,
      zone: nil
    )
    server.clock.advance(seconds: 61)
    #expect(try await create(["one-more"], ada).status == 200)
  }

  @Test("Bytes that one person adds between two counts of a public database count in time")
  func addedBetweenCounts() throws {
    let ledger = QuotaLedger()
    let place = PartitionID(rawValue: 1)
    func isFull(_ user: String, _ bytes: Int64, now: Int64 = 1) -> Bool? {
      ledger.isFull(user, in: place, adding: bytes, share: 800, now: now)
    }
    #expect(isFull("ada", 1) == nil)
    ledger.note(full: ["eve"], in: place, now: 1)
    #expect(isFull("eve", 0) == true)
    #expect(isFull("ada", 60) == false)
    #expect(isFull("bob", 100) == false)
    // More than an eighth of the share since the count.
    #expect(isFull("ada", 60) == nil)
    ledger.note(full: [], in: place, now: 1)
    #expect(isFull("ada", 60, now: 60_001) == nil)
  }

  @Test("One person uploads no more than a share to a public database")
  func publicFiles() async throws {
    let server = try await TestServer(limits: {
      $0.publicUserQuota = 10_000
      $0.assetGrace = 10_000
    })
    let ada = try await server.person()
    let bob = try await server.person("bob")
    func upload(_ person: Person) async throws -> Int {
      let reply: UploadTokensResponse = try await person.call(
        .uploadAssets,
        UploadTokensRequest(
          tokens: [UploadTokenField(fieldName: "file", recordName: "a", recordType: "Note")]
        ),
        in: .public
      )
      let path = try reply.tokens[0].get().url.replacing("http://127.0.0.1:8080", with: "")
      return await server.send("POST", path, body: Data(count: 6000)).status
    }
    #expect([try await upload(ada), try await upload(ada)] == [200, 200])
    #expect(try await upload(ada) == 413)
    #expect(try await upload(bob) == 200)
    server.clock.advance(seconds: 2100)
    #expect(try await upload(ada) == 200)
  }

  @Test("A read of an invented container leaves no row")
  func inventedContainers() async throws {
    let server = try await TestServer()
    func partitions() throws -> Int {
      try server.service.storage.read { try $0.partitions().count }
    }
    let before = try partitions()
    for endpoint in [Endpoint.queryRecords, .lookupRecords, .listZones, .lookupZones] {
      let path = WebServicePath(
        container: "iCloud.invented.\(endpoint.rawValue.count)",
        environment: .development,
        database: .public,
        endpoint: endpoint
      ).text(items: [(WebServiceName.apiToken, server.apiToken)])
      let body =
        #"{"records":[{"recordName":"a"}],"query":{"recordType":"Note"},"#
        + #""zones":[{"zoneName":"_defaultZone"}]}"#
      let response = await server.send("POST", path, body: Data(body.utf8))
      #expect(response.status != 500)
    }
    #expect(try partitions() == before)
    // Existing containers are found.
    let ada = try await server.person()
    try await ada.save(.create, "a", in: .public, zone: nil)
    #expect(try await server.visitor.lookup("a", in: .public, zone: nil).recordName == "a")
  }

  @Test("An account signs in to a limited number of containers", arguments: [2, 3])
  func containers(limit: Int) async throws {
    let server = try await TestServer(limits: { $0.containersPerUser = limit })
    _ = try await server.person()
    for number in 1..<limit {
      _ = try await server.service.signIn(userName: "ada", container: "c\(number)")
    }
    let refused = await #expect(throws: ErrorDictionary.self) {
      try await server.service.signIn(userName: "ada", container: "one more")
    }
    #expect(refused?.serverErrorCode == .quotaExceeded)
    // Its existing containers stay accessible.
    _ = try await server.service.signIn(userName: "ada", container: "c1")
  }
}

/// Files in memory, with the number of begun uploads.
private final class CountingAssetStore: ForwardingAssetStore {
  let store = MemoryAssetStore { Date(timeIntervalSince1970: 1_700_000_000) }
  private let count = Mutex(0)

  var begun: Int { count.withLock { $0 } }

  func begin(_ place: AssetPlace) async throws -> any AssetUpload {
    count.withLock { $0 += 1 }
    return try await store.begin(place)
  }
}
