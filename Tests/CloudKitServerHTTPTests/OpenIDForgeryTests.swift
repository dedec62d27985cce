import CloudKitServer
import CloudKitServerHTTP
import Foundation
import Logging
import Synchronization
import Testing

@Suite("Forged replies of an OpenID Connect issuer")
struct OpenIDForgeryTests {
  /// A token that must be refused, and the log's text.
  struct Forgery: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var reason: String
    var change: @Sendable (inout TestIssuer.Behaviour) -> Void

    init(
      _ name: String,
      _ reason: String,
      _ change: @escaping @Sendable (inout TestIssuer.Behaviour) -> Void
    ) {
      testDescription = name
      self.reason = reason
      self.change = change
    }

    static let all = [
      Forgery("another attempt's nonce", "another attempt") { $0.claims["nonce"] = "other" },
      Forgery("another client's audience", "another client") { $0.claims["aud"] = "other" },
      Forgery("several audiences without a party", "another client") {
        $0.claims["aud"] = ["watershed", "other"]
      },
      Forgery("another party", "another client") { $0.claims["azp"] = "other" },
      Forgery("another issuer", "another issuer") { $0.claims["iss"] = "https://evil.example" },
      Forgery("a token that is over", "expired") { $0.claims["exp"] = 1_700_000_000 },
      Forgery("a token of the future", "not valid yet") { $0.claims["nbf"] = 9_000_000_000 },
      Forgery("a token without a subject", "has no subject") { $0.claims["sub"] = "" },
      Forgery("a changed signature", "signature is not valid") { behaviour in
        behaviour.spoil = { token in
          let parts = token.split(separator: ".")
          return "\(parts[0]).\(parts[1]).\(TestIssuer.base64URL(Data(count: 64)))"
        }
      },
      Forgery("changed claims", "signature is not valid") { behaviour in
        behaviour.spoil = { token in
          let parts = token.split(separator: ".").map(String.init)
          let changed = parts[1].dropLast(4) + "AAAA"
          return "\(parts[0]).\(changed).\(parts[2])"
        }
      },
      Forgery("no algorithm", "algorithm none is not accepted") { behaviour in
        behaviour.algorithm = "none"
        behaviour.spoil = { token in
          token.split(separator: ".").dropLast().joined(separator: ".") + "."
        }
      },
      Forgery("an algorithm whose key everybody knows", "algorithm HS is not accepted") {
        $0.algorithm = "HS256"
      },
      Forgery("another key's algorithm", "no key of the issuer") { $0.algorithm = "RS256" },
      Forgery("something that is no token", "cannot be read") { behaviour in
        behaviour.spoil = { _ in "x.y" }
      },
      Forgery("a key that is not published", "no key of the issuer") {
        $0.publishesKeys = false
      },
      Forgery("no consent", "access_denied") { $0.refusal = "access_denied" },
    ]
  }

  @Test("A token that the issuer did not issue for this attempt is refused", arguments: Forgery.all)
  func forgeries(_ forgery: Forgery) async throws {
    let lines = Mutex<[String]>([])
    let logger = Logger(label: "test") { label in
      JSONLogHandler(label: label) { line in
        lines.withLock { $0.append(String(decoding: line, as: UTF8.self)) }
      }
    }
    try await withIssuer(registration: .open, logger: logger) { issuer, cloud in
      issuer.behave(forgery.change)
      let browser = try await TestBrowser(cloud)
      let reply = try await browser.signIn()
      #expect(reply.status == 401)
      #expect(reply.text.contains("Test did not sign you in."))
      #expect(reply.text.contains("Back to the sign-in"))
      #expect(try cloud.service.accounts.descriptions().map(\.userName) == [TestCloud.userName])
      let log = lines.withLock { $0.joined() }
      #expect(log.contains(forgery.reason), "\(log)")
      for part in try #require(browser.lastReturn).split(separator: "&") {
        let value = part.split(separator: "=").last ?? ""
        #expect(value.count < 20 || !log.contains(value))
      }
    }
  }

  @Test("A reply is valid once, for the browser that began, and unchanged")
  func replays() async throws {
    try await withIssuer(registration: .open) { issuer, cloud in
      let browser = try await TestBrowser(cloud)
      let first = try await browser.signIn()
      #expect(TestBrowser.token(first) != nil)
      let address = try #require(browser.lastReturn)
      let again = try await browser.get(address)
      #expect(again.status == 403)
      #expect(again.text.contains("was used already"))

      let back = try await browser.visitIssuer()
      let stranger = try await TestBrowser(cloud)
      #expect(try await stranger.get(back).status == 400)
      #expect(try await browser.get(back.replacing("state=", with: "state=A")).status == 400)
      // These attempts have not used up the browser's own reply.
      #expect(try await TestBrowser.token(browser.get(back)) != nil)
    }
  }

  @Test("An unknown code, and another user's code, are refused")
  func codes() async throws {
    try await withIssuer(registration: .open) { _, cloud in
      let browser = try await TestBrowser(cloud)
      let own = try await browser.visitIssuer()
      let other = try await TestBrowser(cloud)
      let theirs = try await other.visitIssuer()
      let code = try #require(
        TestIssuer.items(URLComponents(string: theirs)?.query ?? "")["code"]
      )
      let mine = try #require(
        TestIssuer.items(URLComponents(string: own)?.query ?? "")["code"]
      )
      // The verifier belongs to another attempt, so the issuer refuses the code.
      #expect(try await browser.get(own.replacing(mine, with: code)).status == 401)
    }
  }
}
