import CloudKitServer
import Foundation
import OpenCloudKit
import Testing

/// A client, a server, and a connection between them that is interrupted.
@Suite("Interrupted connections")
struct BrokenLineTests {
  private let zone = CKRecordZone(zoneName: "notes")

  private func id(_ name: String) -> CKRecord.ID {
    CKRecord.ID(recordName: name, zoneID: zone.zoneID)
  }

  /// Runs the body with a server behind a breakable connection.
  private func withLine(_ body: (TestCloud, BreakableLine) async throws -> Void) async throws {
    try await withTemporaryFolder { folder in
      let line = try BreakableLine()
      defer { line.stop() }
      try await TestCloud.run(in: folder) { cloud in
        line.lead(to: cloud.server.address.port)
        // The URLs that the server issues lead through the connection too.
        cloud.service.baseURL = line.url
        try await body(cloud, line)
      }
    }
  }

  private func device(_ name: String, _ cloud: TestCloud, _ url: String) -> CKContainer {
    CKContainer(
      identifier: TestCloud.container,
      configuration: CKContainerConfiguration(
        url: URL(string: url),
        apiToken: cloud.apiToken,
        webAuthToken: cloud.webAuthToken
      ),
      clientIdentifier: name
    )
  }

  @Test("A file that was interrupted is resumed, and arrives completely")
  func resuming() async throws {
    try await withLine { cloud, line in
      let bytes = Data((0..<900_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 9) })
      let file = FileManager.default.temporaryDirectory
        .appendingPathComponent("line-\(UUID().uuidString)")
      try bytes.write(to: file)
      defer { try? FileManager.default.removeItem(at: file) }
      let near = device("near", cloud, cloud.url).privateCloudDatabase
      try await near.save(zone)
      let record = CKRecord(recordType: "Note", recordID: id("n"))
      record["file"] = CKAsset(fileURL: file)
      try await near.save(record)

      let far = device("far", cloud, line.url).privateCloudDatabase
      let found = try await far.lookUp([id("n")], desiredKeys: nil)
      let copy = try #require(try found[id("n")]?.get())
      line.cut(afterBytes: 400_000)
      let errors = try await far.fetchFiles(of: [copy])
      #expect(errors.isEmpty)
      #expect(line.wasCut)
      let asset = try #require(copy["file"] as? CKAsset)
      #expect(try Data(contentsOf: #require(asset.fileURL)) == bytes)
      // The second attempt transferred the rest and not the whole.
      line.cut(afterBytes: .max)
      TemporaryAssets.discard(filesOf: [copy])
    }
  }

  @Test("An interrupted event stream continues after its last number, without loss or repetition")
  func stream() async throws {
    try await withLine { cloud, line in
      let phone = device("phone", cloud, cloud.url).privateCloudDatabase
      let laptop = device("laptop", cloud, line.url)
      for name in ["a", "b", "c"] { try await phone.save(CKRecordZone(zoneName: name)) }
      for name in ["a", "b", "c"] {
        let subscription = CKRecordZoneSubscription(
          zoneID: CKRecordZone.ID(zoneName: name),
          subscriptionID: name
        )
        let info = CKSubscription.NotificationInfo()
        info.shouldSendContentAvailable = true
        subscription.notificationInfo = info
        try await laptop.privateCloudDatabase.save(subscription)
      }
      func save(_ zone: String) async throws {
        let record = CKRecord(
          recordType: "Note",
          recordID: CKRecord.ID(
            recordName: UUID().uuidString,
            zoneID: CKRecordZone.ID(zoneName: zone)
          )
        )
        try await phone.save(record)
      }
      let channel = try laptop.pushChannel()
      #expect(try await channel.next() == .connected)
      func next() async throws -> String {
        switch try await channel.next() {
        case .connected: "connected"
        case .changed(_, let zoneID, _): zoneID?.zoneName ?? "?"
        }
      }
      // At its first listening a device is notified to fetch everything it subscribed to.
      #expect(try await Set([next(), next(), next()]) == ["a", "b", "c"])
      try await save("a")
      #expect(try await next() == "a")
      line.cut()
      try await save("b")
      try await save("c")
      #expect(try await [next(), next()] == ["b", "c"])
      line.cut()
      try await save("a")
      #expect(try await next() == "a")
    }
  }

  @Test("After a restart of the server its listeners fetch, since they may have missed changes")
  func restart() async throws {
    try await withTemporaryFolder { folder in
      let line = try BreakableLine()
      defer { line.stop() }
      let (channels, kept) = AsyncStream.makeStream(of: PushChannel.self)
      try await TestCloud.run(in: folder) { cloud in
        line.lead(to: cloud.server.address.port)
        cloud.service.baseURL = line.url
        let near = device("phone", cloud, cloud.url).privateCloudDatabase
        let subscription = CKDatabaseSubscription(subscriptionID: "all")
        try await near.save(subscription)
        let channel = try device("laptop", cloud, line.url).pushChannel()
        #expect(try await channel.next() == .connected)
        // At its first listening a device is notified to fetch.
        let first = try await channel.next()
        #expect(first == .changed(scope: .private, zoneID: nil, subscriptionID: "all"))
        kept.yield(channel)
      }
      let channel = try #require(await channels.first { _ in true })
      try await TestCloud.run(in: folder) { cloud in
        line.lead(to: cloud.server.address.port)
        cloud.service.baseURL = line.url
        let event = try await channel.next()
        #expect(event == .connected)
      }
    }
  }
}
