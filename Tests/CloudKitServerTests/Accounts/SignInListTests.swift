import CloudKitWebServices
import Foundation
import Testing

@testable import CloudKitServer

@Suite("Sign-ins that an administrator lists and ends", .everyEngine)
struct SignInListTests {
  private func administrator() async throws -> Administrator {
    let server = try await TestServer(administratorToken: "operator's token")
    for name in ["ada", "bob"] { _ = try await server.person(name) }
    let admin = Administrator(server: server, token: "operator's token")
    for name in ["ada", "bob"] {
      _ = try await admin.call("users/sign-out", #"{"userName":"\#(name)"}"#)
    }
    return admin
  }

  private func signIn(
    _ admin: Administrator,
    _ name: String,
    _ more: String = ""
  ) async throws
    -> String
  {
    let reply = try await admin.call(
      "users/sign-in",
      #"{"userName":"\#(name)","container":"iCloud.a"\#(more)}"#
    )
    return try #require(reply["webAuthToken"] as? String)
  }

  private func sessions(_ admin: Administrator, _ name: String) async throws -> [[String: Any]] {
    let reply = try await admin.call("users/sessions", #"{"userName":"\#(name)"}"#)
    return try #require(reply["sessions"] as? [[String: Any]])
  }

  private func isOpen(_ token: String, _ admin: Administrator) throws -> Bool {
    try admin.server.service.storage.read { try $0.session(digest: TokenDigest.of(token)) } != nil
  }

  @Test(
    "The list has the open sign-ins of one account, without tokens and without devices' sessions"
  )
  func list() async throws {
    let admin = try await administrator()
    let tokens = [
      try await signIn(admin, "ada"), try await signIn(admin, "ada", #","isKept":true"#),
    ]
    _ = try await signIn(admin, "ada", #","device":"laptop""#)
    _ = try await signIn(admin, "bob")
    let found = try await sessions(admin, "Ada")
    #expect(found.map { $0["isKept"] as? Bool } == [true, false])
    #expect(found.allSatisfy { $0["container"] as? String == "iCloud.a" })
    let ids = found.compactMap { $0["id"] as? String }
    #expect(Set(ids).count == 2)
    for token in tokens {
      #expect(!ids.contains { TokenDigest.of(token) == $0 || token.hasPrefix($0) })
    }
    admin.server.clock.advance(seconds: 3600 * 24 * 100)
    #expect(try await sessions(admin, "ada").isEmpty)
  }

  @Test("One sign-in is ended, and no other: not by the name of another account either")
  func end() async throws {
    let admin = try await administrator()
    let (kept, other) = (
      try await signIn(admin, "ada", #","isKept":true"#), try await signIn(admin, "ada")
    )
    let id = try #require(try await sessions(admin, "ada").first?["id"] as? String)
    for (name, id) in [("bob", id), ("ada", ""), ("ada", String(id.dropLast()))] {
      let refused = await admin.send(
        "users/end-session",
        #"{"userName":"\#(name)","id":"\#(id)"}"#
      )
      #expect(refused.status == 400)
    }
    #expect(try isOpen(kept, admin))
    admin.server.clock.advance(seconds: 1)
    _ = try await admin.call("users/end-session", #"{"userName":"ada","id":"\#(id)"}"#)
    #expect(try !isOpen(kept, admin))
    #expect(try isOpen(other, admin))
    #expect(try await sessions(admin, "ada").count == 1)
    let lines = try await admin.call("audit/list", #"{"kind":"user.end-session"}"#)["lines"]
    #expect((lines as? [[String: Any]])?.map { $0["about"] as? String } == ["ada"])
  }
}
