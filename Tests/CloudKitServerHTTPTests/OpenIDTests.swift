import AsyncHTTPClient
import CloudKitServer
import CloudKitServerHTTP
import Foundation
import Synchronization
import Testing

@Suite("Signing in at an OpenID Connect issuer")
struct OpenIDTests {
  @Test(
    "A user returns signed in, the first time with a new account",
    arguments: [false, true]
  )
  func happyPath(usesRSA: Bool) async throws {
    try await withIssuer(registration: .open) { issuer, cloud in
      issuer.behave { $0.usesRSA = usesRSA }
      let browser = try await TestBrowser(cloud)
      let page = try await browser.openPage()
      #expect(page.contains("Sign in with Test"))
      let first = try await browser.signIn()
      let token = try #require(TestBrowser.token(first))
      let caller = try await cloud.call("users/caller", "{}", webAuthToken: token)
      #expect(caller.status == 200)
      let account = try #require(
        try cloud.service.accounts.descriptions().first { $0.userName == "ada" }
      )
      #expect(account.emailAddress == "ada@example.org")
      #expect(account.givenName == "Ada")
      #expect(!account.isAdministrator)

      // The second time it is the same account, with another name at the issuer.
      issuer.behave { $0.claims["preferred_username"] = "countess" }
      let again = try #require(try await TestBrowser.token(browser.signIn()))
      let same = try await cloud.call("users/caller", "{}", webAuthToken: again)
      #expect(same.text("userRecordName") == caller.text("userRecordName"))
      #expect(try cloud.service.accounts.descriptions().count == 2)
    }
  }

  @Test("Without an issuer the page shows no button for one")
  func withoutIssuer() async throws {
    try await withTemporaryFolder { folder in
      try await TestCloud.run(in: folder) { cloud in
        let browser = try await TestBrowser(cloud)
        let page = try await browser.openPage()
        #expect(!page.contains("identity"))
        #expect(try await browser.begin().status == 404)
        #expect(try await browser.get(cloud.url + "/sign-in/return?state=x&code=y").status == 404)
      }
    }
  }

  @Test("Only the requesting page gets the token, after a click")
  func tokenTransfer() async throws {
    try await withIssuer(registration: .open) { issuer, cloud in
      let token = try await cloud.service.createAPIToken(
        container: TestCloud.container,
        allowedOrigins: ["https://app.example"]
      )
      let browser = try await TestBrowser(cloud, apiToken: token, origin: "https://app.example")
      let page = try await browser.signIn()
      #expect(page.status == 200)
      #expect(page.text.contains("Let https://app.example use your data"))
      #expect(page.text.contains(#"const origin = "https://app.example""#))

      let stranger = try await TestBrowser(cloud, apiToken: token, origin: nil)
      let other = try await stranger.signIn()
      #expect(!other.text.contains("const token"))
    }
  }

  @Test("The issuer gets this server's own return URL, and no secret")
  func redirect() async throws {
    try await withIssuer(registration: .open) { _, cloud in
      let browser = try await TestBrowser(cloud)
      let reply = try await browser.begin("&redirect_uri=https://evil.example")
      let address = try #require(reply.headers["location"])
      let query = TestIssuer.items(
        URLComponents(string: address)?.percentEncodedQuery ?? ""
      )
      #expect(query["redirect_uri"] == cloud.url + "/sign-in/return")
      #expect(query["response_type"] == "code")
      #expect(query["code_challenge_method"] == "S256")
      #expect(query["scope"]?.split(separator: " ").contains("openid") == true)
      #expect(!address.contains("secret"))
      #expect(!(query["state"] ?? "").contains(cloud.apiToken))
      let cookie = try #require(reply.headers["set-cookie"])
      #expect(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"))
    }
  }

  // MARK: Errors of the issuer

  /// A clock that a test advances.
  private final class Hands: Sendable {
    private let ahead = Mutex(0.0)

    var now: Date { Date() + ahead.withLock { $0 } }

    func advance(seconds: Double) { ahead.withLock { $0 += seconds } }
  }

  @Test(
    "The issuer's keys are fetched again after an hour, so that a withdrawn one becomes invalid"
  )
  func agedKeys() async throws {
    let issuer = try await TestIssuer()
    issuer.behave { $0.claims["exp"] = 9_000_000_000 }
    let hands = Hands()
    let provider = OpenIDProvider(issuer.settings, patience: .minutes(10), now: { hands.now })
    let challenge = IdentityChallenge(
      nonce: "n",
      verifier: "v",
      redirectURL: issuer.url + "/return"
    )
    for (step, expected) in [(0.0, 1), (3500, 1), (200, 2)] {
      hands.advance(seconds: step)
      let address = try await provider.signInAddress(challenge, state: "s")
      _ = try await send(HTTPClientRequest(url: address))
      _ = try await provider.identity(code: issuer.code, challenge)
      #expect(issuer.keyRequests == expected)
    }
    try await issuer.stop()
  }

  @Test("A key that the issuer has replaced is fetched once")
  func changedKeys() async throws {
    try await withIssuer(registration: .open) { issuer, cloud in
      let browser = try await TestBrowser(cloud)
      #expect(try await TestBrowser.token(browser.signIn()) != nil)
      #expect(try await TestBrowser.token(browser.signIn()) != nil)
      #expect(issuer.keyRequests == 1)
      issuer.changeKey()
      #expect(try await TestBrowser.token(browser.signIn()) != nil)
      #expect(issuer.keyRequests == 2)
    }
  }

  @Test("While the issuer is unreachable users get an explanation, and passwords work")
  func issuerAway() async throws {
    try await withIssuer(registration: .open) { issuer, cloud in
      let browser = try await TestBrowser(cloud)
      let back = try await browser.visitIssuer()
      try await issuer.stop()
      let late = try await browser.get(back)
      #expect(late.status == 503)
      #expect(late.text.contains("Test cannot be reached right now."))
      let local = try await browser.post(
        browser.page,
        "user=\(TestCloud.userName)&password=correct+horse"
      )
      #expect(TestBrowser.token(local) != nil)
    }
    try await withIssuer(registration: .open) { issuer, cloud in
      try await issuer.stop()
      let reply = try await TestBrowser(cloud).begin()
      #expect(reply.status == 503)
      #expect(reply.headers["location"] == nil)
    }
  }

  @Test("An issuer with another name than in the configuration is refused")
  func misnamed() async throws {
    try await withIssuer(registration: .open) { issuer, cloud in
      issuer.behave { $0.issuer = "https://evil.example" }
      let reply = try await TestBrowser(cloud).begin()
      #expect(reply.status == 503)
    }
  }
}
