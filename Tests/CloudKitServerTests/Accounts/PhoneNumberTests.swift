import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

@Suite("Telephone numbers", .everyEngine)
struct PhoneNumberTests {
  @Test(
    "Two spellings of a number are equal",
    arguments: [
      ("+49 30 901820", "+4930901820"), ("0049 (30) 90-18.20", "+4930901820"),
      ("555-0100", "5550100"), ("110", "110"),
    ]
  )
  func writing(written: String, text: String) {
    #expect(PhoneNumber(written)?.text == text)
  }

  @Test(
    "An invalid number is refused",
    arguments: ["", "12", "+", "call me", "1+234567", "a@b.c", String(repeating: "1", count: 21)]
  )
  func noNumber(written: String) {
    #expect(PhoneNumber(written) == nil)
  }

  /// A user with a number.
  private func bob(_ server: TestServer) async throws -> Person {
    let bob = try await server.person("bob")
    try await server.service.accounts.change("bob", .init(phoneNumber: "+1 555 0100"))
    return bob
  }

  @Test("People are found by their numbers, and see their own")
  func discovery() async throws {
    let server = try await TestServer()
    let bob = try await bob(server)
    let ada = try await server.person("ada")
    let reply: UsersResponse = try await ada.call(
      .discoverUsers,
      DiscoverUsersRequest(lookupInfos: [
        LookupInfo(phoneNumber: "001 (555) 0100"), LookupInfo(phoneNumber: "+1 555 0199"),
      ]),
      in: .public
    )
    #expect(reply.users.map { $0.item?.userRecordName } == [try await bob.userRecordName])
    #expect(reply.users[0].item?.lookupInfo?.phoneNumber == "001 (555) 0100")
    let own: UserIdentity = try await bob.call(.caller, [String: String](), in: .public)
    #expect(own.lookupInfo?.phoneNumber == "+15550100")
  }

  @Test(
    "An invitation by number is for the user who has it, now or later",
    arguments: [true, false]
  )
  func invitation(isKnown: Bool) async throws {
    let server = try await TestServer()
    if isKnown { _ = try await bob(server) }
    let ada = try await server.person("ada")
    try await ada.makeZone()
    try await ada.save(.create, "root")
    let share = try await ada.share(
      "root",
      with: [
        ShareParticipant(
          type: .user,
          permission: .readWrite,
          userIdentity: UserIdentity(lookupInfo: LookupInfo(phoneNumber: "+1-555-0100"))
        )
      ]
    )
    let bob = try await bob(server)
    #expect(try await bob.accept(share).participantStatus == .accepted)
    let other = try await server.person("other")
    await #expect(throws: ErrorDictionary.self) { try await other.resolve(share.shortGUID) }
  }

  @Test("A number belongs to one account, until it is changed or removed")
  func uniqueness() async throws {
    let server = try await TestServer()
    _ = try await bob(server)
    _ = try await server.person("ada")
    let service = server.service
    await #expect(throws: AdministrationError.self) {
      try await service.accounts.change("ada", .init(phoneNumber: "+15550100"))
    }
    await #expect(throws: AdministrationError.self) {
      try await service.accounts.change("ada", .init(phoneNumber: "nobody's"))
    }
    // Setting the same number again is no change.
    try await service.accounts.change("bob", .init(phoneNumber: "+1 555 0100"))
    try await service.accounts.change("bob", .init(phoneNumber: ""))
    try await service.accounts.change("ada", .init(phoneNumber: "+15550100"))
    let numbers = try service.accounts.descriptions().map { ($0.userName, $0.phoneNumber) }
    #expect(
      Dictionary(uniqueKeysWithValues: numbers) as [String: String?]
        == ["ada": "+15550100", "bob": nil]
    )
    try await service.accounts.delete("ada", purgesNow: true)
    try await service.accounts.change("bob", .init(phoneNumber: "+15550100"))
  }
}
