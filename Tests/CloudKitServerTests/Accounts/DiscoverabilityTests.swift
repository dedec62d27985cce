import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

/// Which users can be looked up by an address, a number or a record name.
@Suite("Consent to be found", .everyEngine)
struct DiscoverabilityTests {
  private func world(
    _ policy: DiscoveryPolicy
  ) async throws -> (TestServer, ada: Person, bob: Person) {
    let server = try await TestServer(discovery: policy)
    let ada = try await server.person()
    return (server, ada, try await server.person("bob"))
  }

  private func say(
    _ body: String,
    _ person: Person,
    apiToken: String? = nil
  ) async throws -> DiscoverabilityReply {
    let token = WebServicePath.escape(person.webAuthToken ?? "")
    let reply = await person.server.send(
      "POST",
      "/account/discoverability?ckAPIToken=\(person.server.apiToken)&ckWebAuthToken=\(token)",
      body: Data(body.utf8)
    )
    return try WireCoding.decode(DiscoverabilityReply.self, from: reply.body)
  }

  private func found(_ infos: [LookupInfo], by person: Person) async throws -> [UserIdentity] {
    let reply: UsersResponse = try await person.call(
      .discoverUsers,
      DiscoverUsersRequest(lookupInfos: infos),
      in: .public
    )
    return try reply.users.map { try $0.get() }
  }

  private static let address = LookupInfo(emailAddress: "ada@example.com")
  private static let number = LookupInfo(phoneNumber: "+49301234567")

  @Test("A person is found by an address or a number only after consenting")
  func consent() async throws {
    let (server, ada, bob) = try await world(.consent)
    try await server.service.accounts.change("ada", .init(phoneNumber: "+49 30 1234567"))
    let infos = [Self.address, Self.number]
    #expect(try await found(infos, by: bob).isEmpty)
    #expect(
      try await say("{}", ada) == DiscoverabilityReply(isDiscoverable: false, isDecided: false)
    )
    // People find themselves.
    #expect(try await found([Self.address], by: ada).first?.firstName == "Ada")
    #expect(try await say(#"{"isGranted":true}"#, ada).isDiscoverable)
    #expect(try await found(infos, by: bob).map(\.firstName) == ["Ada", "Ada"])
    #expect(try await !say(#"{"isGranted":false}"#, ada).isDiscoverable)
    #expect(try await found(infos, by: bob).isEmpty)
  }

  @Test("Where everyone is found, a person who refuses is not")
  func refusal() async throws {
    let (_, ada, bob) = try await world(.everyone)
    #expect(try await found([Self.address], by: bob).count == 1)
    #expect(
      try await say("{}", ada) == DiscoverabilityReply(isDiscoverable: true, isDecided: false)
    )
    _ = try await say(#"{"isGranted":false}"#, ada)
    #expect(try await found([Self.address], by: bob).isEmpty)
  }

  @Test("A record name is answered without the names of a person who has not consented")
  func recordNames() async throws {
    let (_, ada, bob) = try await world(.consent)
    let own: UserIdentity = try await ada.call(.caller, [String: String](), in: .public)
    let info = LookupInfo(userRecordName: own.userRecordName)
    let hidden = try #require(try await found([info], by: bob).first)
    #expect(hidden.userRecordName == own.userRecordName)
    #expect(hidden.firstName == nil && hidden.nameComponents?.givenName == nil)
    #expect(hidden.emailAddress == nil && hidden.lookupInfo?.emailAddress == nil)
    _ = try await say(#"{"isGranted":true}"#, ada)
    #expect(try await found([info], by: bob).first?.firstName == "Ada")
  }

  @Test("A consent is for one container, and goes with its account")
  func bounds() async throws {
    let (server, ada, _) = try await world(.consent)
    _ = try await say(#"{"isGranted":true}"#, ada)
    let account = try server.service.storage.account(named: "ada").id
    func consent(_ container: String) throws -> Bool? {
      try server.service.storage.read { try $0.discoverability(of: account, in: container) }
    }
    #expect(try consent(TestServer.container) == true)
    #expect(try consent("iCloud.other") == nil)
    try await server.service.accounts.delete("ada", purgesNow: true)
    #expect(try consent(TestServer.container) == nil)
  }
}
