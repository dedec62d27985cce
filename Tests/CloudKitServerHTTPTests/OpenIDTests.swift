import AsyncHTTPClient
import CloudKitServer
import CloudKitServerHTTP
import CloudKitWebServices
import Foundation
import Logging
import NIOCore
import Synchronization
import Testing

@Suite("Signing in at an OpenID Connect issuer")
struct OpenIDTests {
  // MARK: Doing it

  @Test(
    "A person comes back signed in, the first time with a new account",
    arguments: [false, true]
  )
  func happyPath(usesRSA: Bool) async throws {
    try await withIssuer(registration: .open) { issuer, cloud in
      issuer.behave { $0.usesRSA = usesRSA }
      let browser = try await Browser(cloud)
      let page = try await browser.openPage()
      #expect(page.contains("Sign in with Test"))
      let first = try await browser.signIn()
      let token = try #require(Browser.token(first))
      let caller = try await cloud.call("users/caller", "{}", webAuthToken: token)
      #expect(caller.status == 200)
      let account = try #require(
        try cloud.service.accountDescriptions().first { $0.userName == "ada" }
      )
      #expect(account.emailAddress == "ada@example.org")
      #expect(account.givenName == "Ada")
      #expect(!account.isAdministrator)

      // The second time it is the same account, whatever the person is called by now.
      issuer.behave { $0.claims["preferred_username"] = "countess" }
      let again = try #require(try await Browser.token(browser.signIn()))
      let same = try await cloud.call("users/caller", "{}", webAuthToken: again)
      #expect(same.text("userRecordName") == caller.text("userRecordName"))
      #expect(try cloud.service.userNames().count == 2)
    }
  }

  @Test("Where nobody else is offered, the page offers nobody else")
  func withoutIssuer() async throws {
    try await withTemporaryFolder { folder in
      try await TestCloud.run(in: folder) { cloud in
        let browser = try await Browser(cloud)
        let page = try await browser.openPage()
        #expect(!page.contains("identity"))
        #expect(try await browser.begin().status == 404)
        #expect(try await browser.get(cloud.url + "/sign-in/return?state=x&code=y").status == 404)
      }
    }
  }

  @Test("The page that asked gets the answer after a click, and no other page")
  func handOver() async throws {
    try await withIssuer(registration: .open) { issuer, cloud in
      let token = try await cloud.service.createAPIToken(
        container: TestCloud.container,
        allowedOrigins: ["https://app.example"]
      )
      let browser = try await Browser(cloud, apiToken: token, origin: "https://app.example")
      let page = try await browser.signIn()
      #expect(page.status == 200)
      #expect(page.text.contains("Let https://app.example use your data"))
      #expect(page.text.contains(#"const origin = "https://app.example""#))

      let stranger = try await Browser(cloud, apiToken: token, origin: nil)
      let other = try await stranger.signIn()
      #expect(!other.text.contains("const token"))
    }
  }

  @Test("The issuer is told this server's own address to send people back to, and nothing secret")
  func redirect() async throws {
    try await withIssuer(registration: .open) { _, cloud in
      let browser = try await Browser(cloud)
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

  // MARK: What is refused

  /// A token that must not be taken, and what the log says.
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
      Forgery("a token about nobody", "about nobody") { $0.claims["sub"] = "" },
      Forgery("a changed signature", "signature is not right") { behaviour in
        behaviour.spoil = { token in
          let parts = token.split(separator: ".")
          return "\(parts[0]).\(parts[1]).\(TestIssuer.base64URL(Data(count: 64)))"
        }
      },
      Forgery("changed claims", "signature is not right") { behaviour in
        behaviour.spoil = { token in
          let parts = token.split(separator: ".").map(String.init)
          let changed = parts[1].dropLast(4) + "AAAA"
          return "\(parts[0]).\(changed).\(parts[2])"
        }
      },
      Forgery("no algorithm", "algorithm none is not taken") { behaviour in
        behaviour.algorithm = "none"
        behaviour.spoil = { token in
          token.split(separator: ".").dropLast().joined(separator: ".") + "."
        }
      },
      Forgery("an algorithm whose key everybody knows", "algorithm HS is not taken") {
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

  @Test("What the issuer did not say of this attempt opens nothing", arguments: Forgery.all)
  func forgeries(_ forgery: Forgery) async throws {
    let lines = Mutex<[String]>([])
    let logger = Logger(label: "test") { label in
      JSONLogHandler(label: label) { line in
        lines.withLock { $0.append(String(decoding: line, as: UTF8.self)) }
      }
    }
    try await withIssuer(registration: .open, logger: logger) { issuer, cloud in
      issuer.behave(forgery.change)
      let browser = try await Browser(cloud)
      let reply = try await browser.signIn()
      #expect(reply.status == 401)
      #expect(reply.text.contains("Test did not sign you in."))
      #expect(reply.text.contains("Back to the sign-in"))
      #expect(try cloud.service.userNames() == [TestCloud.userName])
      let log = lines.withLock { $0.joined() }
      #expect(log.contains(forgery.reason), "\(log)")
      for part in try #require(browser.lastReturn).split(separator: "&") {
        let value = part.split(separator: "=").last ?? ""
        #expect(value.count < 20 || !log.contains(value))
      }
    }
  }

  @Test("An answer serves once, for the browser that set out, and as it was given")
  func replays() async throws {
    try await withIssuer(registration: .open) { issuer, cloud in
      let browser = try await Browser(cloud)
      let first = try await browser.signIn()
      #expect(Browser.token(first) != nil)
      let address = try #require(browser.lastReturn)
      let again = try await browser.get(address)
      #expect(again.status == 403)
      #expect(again.text.contains("was used already"))

      let back = try await browser.visitIssuer()
      let stranger = try await Browser(cloud)
      #expect(try await stranger.get(back).status == 400)
      #expect(try await browser.get(back.replacing("state=", with: "state=A")).status == 400)
      // None of it has used up the browser's own.
      #expect(try await Browser.token(browser.get(back)) != nil)
    }
  }

  @Test("A code that the issuer does not know, and somebody else's code, open nothing")
  func codes() async throws {
    try await withIssuer(registration: .open) { _, cloud in
      let browser = try await Browser(cloud)
      let own = try await browser.visitIssuer()
      let other = try await Browser(cloud)
      let theirs = try await other.visitIssuer()
      let code = try #require(
        TestIssuer.items(URLComponents(string: theirs)?.query ?? "")["code"]
      )
      let mine = try #require(
        TestIssuer.items(URLComponents(string: own)?.query ?? "")["code"]
      )
      // The verifier belongs to another attempt: the issuer refuses it.
      #expect(try await browser.get(own.replacing(mine, with: code)).status == 401)
    }
  }

  // MARK: The issuer's own troubles

  @Test("A key that the issuer has changed is fetched once")
  func changedKeys() async throws {
    try await withIssuer(registration: .open) { issuer, cloud in
      let browser = try await Browser(cloud)
      #expect(try await Browser.token(browser.signIn()) != nil)
      #expect(try await Browser.token(browser.signIn()) != nil)
      #expect(issuer.keyRequests == 1)
      issuer.changeKey()
      #expect(try await Browser.token(browser.signIn()) != nil)
      #expect(issuer.keyRequests == 2)
    }
  }

  @Test("While the issuer is away people are told so, and passwords work")
  func issuerAway() async throws {
    try await withIssuer(registration: .open) { issuer, cloud in
      let browser = try await Browser(cloud)
      let back = try await browser.visitIssuer()
      try await issuer.stop()
      let late = try await browser.get(back)
      #expect(late.status == 503)
      #expect(late.text.contains("Test cannot be reached right now."))
      let local = try await browser.post(
        browser.page,
        "user=\(TestCloud.userName)&password=correct+horse"
      )
      #expect(Browser.token(local) != nil)
    }
    try await withIssuer(registration: .open) { issuer, cloud in
      try await issuer.stop()
      let reply = try await Browser(cloud).begin()
      #expect(reply.status == 503)
      #expect(reply.headers["location"] == nil)
    }
  }

  @Test("An issuer that names itself otherwise is not the one of the configuration")
  func misnamed() async throws {
    try await withIssuer(registration: .open) { issuer, cloud in
      issuer.behave { $0.issuer = "https://evil.example" }
      let reply = try await Browser(cloud).begin()
      #expect(reply.status == 503)
    }
  }

  // MARK: Accounts

  @Test("Who has no account here is told, where new ones are by invitation; one lets them in")
  func invitations() async throws {
    try await withIssuer(registration: .invitation) { _, cloud in
      let browser = try await Browser(cloud)
      let refused = try await browser.signIn()
      #expect(refused.status == 403)
      #expect(refused.text.contains("by invitation"))
      #expect(try cloud.service.userNames() == [TestCloud.userName])

      let code = try await cloud.service.invite()
      let page = cloud.service.signUpURL(invitation: code)
      let form = try await browser.get(page)
      #expect(form.text.contains("Sign up with Test"))
      let begun = try await browser.post(page, "with=identity")
      let made = try await browser.finish(begun)
      #expect(made.text.contains("The account ada is there."))
      #expect(try await Browser.token(browser.signIn()) != nil)
      // The invitation is used up.
      let used = try await browser.post(page, "user=eve&password=0123456789")
      #expect(used.status == 400)
    }
  }

  @Test("The issuer's people can be let in where others need an invitation")
  func issuersPeople() async throws {
    try await withIssuer(registration: .closed, adjust: { $0.registration = .open }) { _, cloud in
      let isSignedIn = try await Browser.signsIn(cloud)
      #expect(isSignedIn)
    }
  }

  @Test("A verified address opens the account that has it, where the configuration says so")
  func linking() async throws {
    try await withIssuer(registration: .closed, adjust: { $0.linksByEmail = true }) {
      issuer,
      cloud in
      try await cloud.service.createAccount(
        userName: "countess",
        password: "known to somebody",
        emailAddress: "Ada@example.org"
      )
      let old = try await cloud.service.signIn(
        userName: "countess",
        password: "known to somebody",
        container: TestCloud.container
      )
      let browser = try await Browser(cloud)
      issuer.behave { $0.claims["email_verified"] = false }
      #expect(try await browser.signIn().status == 403)
      issuer.behave { $0.claims["email_verified"] = true }
      let token = try #require(try await Browser.token(browser.signIn()))
      #expect(try await cloud.call("users/caller", "{}", webAuthToken: token).status == 200)
      // Whoever had made the account with this address is out of it.
      #expect(try await cloud.call("users/caller", "{}", webAuthToken: old).status == 421)
      await #expect(throws: ErrorDictionary.self) {
        try await cloud.service.signIn(
          userName: "countess",
          password: "known to somebody",
          container: TestCloud.container
        )
      }
      // Another person with the same address is another person.
      issuer.behave { $0.claims["sub"] = "person-8" }
      #expect(try await browser.signIn().status == 403)
    }
  }

  @Test("Without that setting an address opens nothing, and a taken name is not taken over")
  func noLinking() async throws {
    try await withIssuer(registration: .open) { issuer, cloud in
      try await cloud.service.createAccount(
        userName: "ada",
        password: "known to somebody",
        emailAddress: "ada@example.org"
      )
      let isSignedIn = try await Browser.signsIn(cloud)
      #expect(isSignedIn)
      let names = try Set(cloud.service.userNames())
      #expect(names == [TestCloud.userName, "ada", "ada@example.org"])
      // A name that looks like an address is not one that others are found by.
      issuer.behave {
        $0.claims = ["sub": "person-9", "preferred_username": "boss@example.org"]
      }
      let isBossIn = try await Browser.signsIn(cloud)
      #expect(isBossIn)
      let boss = try #require(
        try cloud.service.accountDescriptions().first { $0.userName == "boss" }
      )
      #expect(boss.emailAddress == nil)
    }
  }

  @Test("What only the userinfo endpoint tells is asked for there")
  func userInformation() async throws {
    try await withIssuer(registration: .open) { issuer, cloud in
      issuer.behave {
        $0.claims = ["sub": "person-9"]
        $0.more = ["email": "grace@example.org", "email_verified": "true"]
      }
      let isSignedIn = try await Browser.signsIn(cloud)
      #expect(isSignedIn)
      let names = try cloud.service.userNames()
      #expect(names.contains("grace@example.org"))
    }
  }

  @Test("A shut account stays shut, and a purged one comes back as a new one")
  func shutAccounts() async throws {
    try await withIssuer(registration: .open) { _, cloud in
      let browser = try await Browser(cloud)
      let token = try #require(try await Browser.token(browser.signIn()))
      let before = try await cloud.call("users/caller", "{}", webAuthToken: token)
      try await cloud.service.deleteAccount("ada")
      let refused = try await browser.signIn()
      #expect(refused.status == 403)
      #expect(refused.text.contains("may not sign in"))
      try await cloud.service.deleteAccount("ada", purgesNow: true)
      let next = try #require(try await Browser.token(browser.signIn()))
      let after = try await cloud.call("users/caller", "{}", webAuthToken: next)
      #expect(after.text("userRecordName") != before.text("userRecordName"))
    }
  }

  // MARK: Their world

  private func withIssuer(
    registration: RegistrationPolicy,
    logger: Logger = .quiet,
    adjust: (inout OpenIDSettings) -> Void = { _ in },
    _ body: (TestIssuer, TestCloud) async throws -> Void
  ) async throws {
    let issuer = try await TestIssuer()
    var settings = issuer.settings
    adjust(&settings)
    let provider = OpenIDProvider(settings)
    let outcome: Result<Void, any Error>
    do {
      try await withTemporaryFolder { folder in
        try await TestCloud.run(
          in: folder,
          adjust: {
            $0.registration = registration
            $0.identityProvider = provider
            $0.logger = logger
          }
        ) { try await body(issuer, $0) }
      }
      outcome = .success(())
    } catch {
      outcome = .failure(error)
    }
    try await issuer.stop()
    try outcome.get()
  }
}

/// Somebody's browser: it keeps a cookie and goes where it is sent, one step at a time.
private final class Browser {
  private let cloud: TestCloud
  /// The sign-in page that it was sent to.
  let page: String
  private var cookie: String?
  /// Where it came back to last.
  private(set) var lastReturn: String?

  private static let client: HTTPClient = {
    var configuration = HTTPClient.Configuration.singletonConfiguration
    configuration.redirectConfiguration = .disallow
    return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
  }()

  /// Is sent to the sign-in page for an API token, by default one that sends the token to an address.
  init(_ cloud: TestCloud, apiToken: String? = nil, origin: String? = nil) async throws {
    self.cloud = cloud
    let token: String
    if let apiToken {
      token = apiToken
    } else {
      token = try await cloud.service.createAPIToken(
        container: TestCloud.container,
        redirectURL: "https://app.example/after"
      )
    }
    var headers: [String: String] = [:]
    if let origin { headers["origin"] = origin }
    let reply = await cloud.service.respond(
      to: WebServiceRequest(
        method: "POST",
        path: "/database/1/\(TestCloud.container)/development/private/users/caller"
          + "?ckAPIToken=\(token)",
        headers: headers,
        body: Data("{}".utf8)
      )
    )
    let object = try JSONSerialization.jsonObject(with: reply.body) as? [String: Any]
    page = object?["redirectURL"] as? String ?? ""
  }

  func openPage() async throws -> String { try await get(page).text }

  func begin(_ more: String = "") async throws -> HTTPReply {
    try await post(page + more, "with=identity&keep=on")
  }

  /// Goes to the issuer and gives the address that it sends people back to.
  func visitIssuer() async throws -> String {
    let begun = try await begin()
    let back = try await get(begun.headers["location"] ?? "")
    return back.headers["location"] ?? ""
  }

  func finish(_ begun: HTTPReply) async throws -> HTTPReply {
    let back = try await get(begun.headers["location"] ?? "")
    lastReturn = back.headers["location"] ?? ""
    return try await get(lastReturn ?? "")
  }

  func signIn() async throws -> HTTPReply { try await finish(try await begin()) }

  /// Whether somebody with a new browser comes back signed in.
  static func signsIn(_ cloud: TestCloud) async throws -> Bool {
    try await token(Browser(cloud).signIn()) != nil
  }

  /// The token in the address that an app is called back at.
  static func token(_ reply: HTTPReply) -> String? {
    guard reply.status == 303, let address = reply.headers["location"],
      address.hasPrefix("https://app.example/after?")
    else { return nil }
    return TestIssuer.items(URLComponents(string: address)?.percentEncodedQuery ?? "")[
      "ckWebAuthToken"
    ]
  }

  func get(_ url: String) async throws -> HTTPReply { try await send(HTTPClientRequest(url: url)) }

  func post(_ url: String, _ form: String) async throws -> HTTPReply {
    var request = HTTPClientRequest(url: url)
    request.method = .POST
    request.headers.add(name: "content-type", value: "application/x-www-form-urlencoded")
    request.body = .bytes(ByteBuffer(string: form))
    return try await send(request)
  }

  private func send(_ request: HTTPClientRequest) async throws -> HTTPReply {
    var request = request
    if let cookie, request.url.hasPrefix(cloud.url) {
      request.headers.add(name: "cookie", value: "other=1; \(cookie)")
    }
    let response = try await Self.client.execute(request, timeout: .minutes(2))
    var headers: [String: String] = [:]
    for (name, value) in response.headers { headers[name.lowercased()] = value }
    if let given = headers["set-cookie"] { cookie = String(given.prefix { $0 != ";" }) }
    let body = try await response.body.collect(upTo: 1_000_000)
    return HTTPReply(
      status: Int(response.status.code),
      headers: headers,
      body: Data(buffer: body)
    )
  }
}
