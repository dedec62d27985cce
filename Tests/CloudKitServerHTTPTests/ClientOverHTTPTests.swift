import CloudKitServer
import CloudKitServerHTTP
import Foundation
import OpenCloudKit
import Testing

/// Our own client with our own server, over sockets.
@Suite("OpenCloudKit over HTTP")
struct ClientOverHTTPTests {
  private let zone = CKRecordZone(zoneName: "notes")

  @Test("A record and its asset reach another device over sockets")
  func recordsAndAssetsArrive() async throws {
    try await withTemporaryFolder { folder in
      let file = folder.appendingPathComponent("picture")
      let bytes = Data((0..<700_000).map { UInt8(truncatingIfNeeded: $0 &* 13) })
      try bytes.write(to: file)
      try await TestCloud.run(in: folder.appendingPathComponent("server")) { cloud in
        let phone = try device("phone", cloud).privateCloudDatabase
        let laptop = try device("laptop", cloud).privateCloudDatabase
        try await phone.save(zone)
        let record = CKRecord(recordType: "Note", recordID: id("n"))
        record["title"] = "Über den Fluß"
        record["picture"] = CKAsset(fileURL: file)
        try await phone.save(record)
        let copy = try await laptop.record(for: id("n"))
        #expect(copy["title"] as? String == "Über den Fluß")
        let asset = try #require(copy["picture"] as? CKAsset)
        #expect(try Data(contentsOf: #require(asset.fileURL)) == bytes)
      }
    }
  }

  @Test("A save on one device wakes the other one's open connection")
  func savesWake() async throws {
    try await withTemporaryFolder { folder in
      try await TestCloud.run(in: folder) { cloud in
        let phone = try device("phone", cloud)
        let laptop = try device("laptop", cloud)
        try await phone.privateCloudDatabase.save(zone)
        let subscription = CKDatabaseSubscription(subscriptionID: "all")
        let info = CKSubscription.NotificationInfo()
        info.shouldSendContentAvailable = true
        subscription.notificationInfo = info
        try await laptop.privateCloudDatabase.save(subscription)
        let channel = try laptop.pushChannel()
        #expect(try await channel.next() == .connected)
        async let event = channel.next()
        let record = CKRecord(recordType: "Note", recordID: id("n"))
        record["title"] = "x"
        try await phone.privateCloudDatabase.save(record)
        guard case .changed(let scope, _, _) = try await event else {
          Issue.record("the channel told of something else")
          return
        }
        #expect(scope == .private)
      }
    }
  }

  @Test("An unreachable server is CloudKit's network error, and calls succeed when it is back")
  func survivesAbsence() async throws {
    try await withTemporaryFolder { folder in
      let (devices, found) = AsyncStream.makeStream(of: (CKContainer, Int).self)
      try await TestCloud.run(in: folder) { cloud in
        let phone = try device("phone", cloud)
        try await phone.privateCloudDatabase.save(zone)
        found.yield((phone, cloud.server.address.port))
      }
      let (phone, port) = try #require(await devices.first { _ in true })
      let record = CKRecord(recordType: "Note", recordID: id("n"))
      record["title"] = "x"
      let error = await #expect(throws: CKError.self) {
        try await phone.privateCloudDatabase.save(record)
      }
      #expect(error?.code == .networkUnavailable || error?.code == .networkFailure)
      try await TestCloud.run(in: folder, port: port) { _ in
        try await phone.privateCloudDatabase.save(record)
        #expect(
          try await phone.privateCloudDatabase.record(for: id("n"))["title"] as? String == "x"
        )
      }
    }
  }

  @Test("A user is found by address once the app has requested the permission, unless they refused")
  @available(*, deprecated)
  func discoverability() async throws {
    try await withTemporaryFolder { folder in
      try await TestCloud.run(in: folder, adjust: { $0.discovery = .consent }) { cloud in
        let anna = try device("phone", cloud)
        try await cloud.service.createAccount(
          userName: "bob",
          password: "battery staple",
          givenName: "Bob",
          emailAddress: "bob@example.org"
        )
        let token = try await cloud.service.signIn(
          userName: "bob",
          container: TestCloud.container
        )
        let bob = try device("laptop", cloud, webAuthToken: token)
        func find() async throws -> String? {
          try await anna.userIdentity(forEmailAddress: "bob@example.org")?
            .nameComponents?.givenName
        }
        #expect(
          try await bob.applicationPermissionStatus(for: .userDiscoverability) == .initialState
        )
        #expect(try await find() == nil)
        #expect(
          try await bob.requestApplicationPermission(.userDiscoverability) == .granted
        )
        #expect(try await find() == "Bob")
        let query = "ckAPIToken=\(cloud.apiToken)&ckWebAuthToken=\(token)"
        let reply = try await cloud.post(
          "\(cloud.url)/account/discoverability?\(query)",
          Data(#"{"isGranted":false}"#.utf8)
        )
        #expect(reply.status == 200)
        #expect(try await bob.requestApplicationPermission(.userDiscoverability) == .denied)
        #expect(try await find() == nil)
      }
    }
  }

  private func id(_ name: String) -> CKRecord.ID {
    CKRecord.ID(recordName: name, zoneID: zone.zoneID)
  }

  private func device(
    _ name: String,
    _ cloud: TestCloud,
    webAuthToken: String? = nil
  ) throws -> CKContainer {
    CKContainer(
      identifier: TestCloud.container,
      configuration: CKContainerConfiguration(
        url: URL(string: cloud.url),
        apiToken: cloud.apiToken,
        webAuthToken: webAuthToken ?? cloud.webAuthToken
      ),
      clientIdentifier: name,
      retries: .interactive
    )
  }
}
