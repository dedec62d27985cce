import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

@Suite("Names and addresses of users")
struct PersonNameTests {
  @Test(
    "A user name has no characters that change how it looks",
    arguments: [
      ("ada", true), ("Zoë Müller", true), ("می\u{200C}خواهم", true), ("👩\u{200D}👧", true),
      ("eve\u{1B}[31m", false), ("eve\u{7}", false), ("a\u{202E}b", false), ("a\nb", false),
      ("a\u{9B}b", false), ("a\u{2028}b", false), ("a\u{200B}b", false), (" ada", false),
      ("ada ", false),
    ]
  )
  func userNames(name: String, isTaken: Bool) async throws {
    let server = try await TestServer(registration: .open)
    let body = "user=\(WebServicePath.escape(name))&password=a+long+password"
    let response = await server.send("POST", "/sign-up", body: Data(body.utf8))
    #expect(response.status == (isTaken ? 200 : 400))
    #expect(try server.service.accounts.has(named: name) == isTaken)
  }

  @Test("Hidden characters are removed from a device's name")
  func deviceNames() {
    #expect(PersonName.device("Ada's\u{1B}[31m phone\u{202E}", limit: 255) == "Ada's[31m phone")
    #expect(PersonName.device("\u{1B}\n ", limit: 255) == "a device")
    #expect(PersonName.device(nil, limit: 255) == "a device")
    #expect(PersonName.device(String(repeating: "é", count: 300), limit: 255).count == 255)
  }

  @Test("An unverified address identifies no account until an administrator sets it")
  func unverified() async throws {
    let server = try await TestServer(registration: .open)
    let address = "victim@example.org"
    let body = "user=mallory&email=\(address)&password=a+long+password"
    #expect(await server.send("POST", "/sign-up", body: Data(body.utf8)).status == 200)
    let storage = server.service.storage
    func owner() throws -> String? {
      try storage.read { try $0.account(owning: address) }?.userName
    }
    #expect(try owner() == nil)
    // The owner has an account: sort order does not decide.
    try await server.service.createAccount(
      userName: "victim",
      password: "secret",
      emailAddress: address
    )
    #expect(try owner() == "victim")
    try await server.service.accounts.change("mallory", .init(emailAddress: address))
    #expect(try owner() == nil)
    try await server.service.accounts.change("mallory", .init(emailAddress: "m@example.org"))
    #expect(try owner() == "victim")
    let states = try server.service.accounts.descriptions()
    #expect(states.allSatisfy { $0.hasUnverifiedAddress != true })
  }
}
