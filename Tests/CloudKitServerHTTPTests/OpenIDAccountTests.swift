import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

@Suite("Accounts of users of an OpenID Connect issuer")
struct OpenIDAccountTests {
  @Test("A user without an account gets an explanation, and can register with an invitation")
  func invitations() async throws {
    try await withIssuer(registration: .invitation) { _, cloud in
      let browser = try await TestBrowser(cloud)
      let refused = try await browser.signIn()
      #expect(refused.status == 403)
      #expect(refused.text.contains("require an invitation"))
      #expect(try cloud.service.accounts.descriptions().map(\.userName) == [TestCloud.userName])

      let code = try await cloud.service.accounts.invite()
      let page = cloud.service.accounts.signUpURL(invitation: code)
      let form = try await browser.get(page)
      #expect(form.text.contains("Sign up with Test"))
      let begun = try await browser.post(page, "with=identity")
      let made = try await browser.finish(begun)
      #expect(made.text.contains("The account ada was created."))
      #expect(try await TestBrowser.token(browser.signIn()) != nil)
      // The invitation is used up.
      let used = try await browser.post(page, "user=eve&password=0123456789")
      #expect(used.status == 400)
    }
  }

  @Test("The issuer's users can register where others need an invitation")
  func issuersPeople() async throws {
    try await withIssuer(registration: .closed, adjust: { $0.registration = .open }) { _, cloud in
      let isSignedIn = try await TestBrowser.signsIn(cloud)
      #expect(isSignedIn)
    }
  }

  @Test("A verified address selects the account that has it, if the configuration allows it")
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
      let browser = try await TestBrowser(cloud)
      issuer.behave { $0.claims["email_verified"] = false }
      #expect(try await browser.signIn().status == 403)
      issuer.behave { $0.claims["email_verified"] = true }
      let token = try #require(try await TestBrowser.token(browser.signIn()))
      #expect(try await cloud.call("users/caller", "{}", webAuthToken: token).status == 200)
      // The user who created the account with this address has lost access.
      #expect(try await cloud.call("users/caller", "{}", webAuthToken: old).status == 421)
      await #expect(throws: ErrorDictionary.self) {
        try await cloud.service.signIn(
          userName: "countess",
          password: "known to somebody",
          container: TestCloud.container
        )
      }
      // Another user with the same address is another user.
      issuer.behave { $0.claims["sub"] = "person-8" }
      #expect(try await browser.signIn().status == 403)
    }
  }

  @Test("Without that setting an address selects no account, and a taken name is not used")
  func noLinking() async throws {
    try await withIssuer(registration: .open) { issuer, cloud in
      try await cloud.service.createAccount(
        userName: "ada",
        password: "known to somebody",
        emailAddress: "ada@example.org"
      )
      let isSignedIn = try await TestBrowser.signsIn(cloud)
      #expect(isSignedIn)
      let names = try Set(cloud.service.accounts.descriptions().map(\.userName))
      #expect(names == [TestCloud.userName, "ada", "ada@example.org"])
      // A name that looks like an address does not make the account findable by it.
      issuer.behave {
        $0.claims = ["sub": "person-9", "preferred_username": "boss@example.org"]
      }
      let isBossIn = try await TestBrowser.signsIn(cloud)
      #expect(isBossIn)
      let boss = try #require(
        try cloud.service.accounts.descriptions().first { $0.userName == "boss" }
      )
      #expect(boss.emailAddress == nil)
    }
  }

  @Test(
    "A name at the issuer that is an address makes no account of that address",
    arguments: ["given_name", "name"]
  )
  func addressAsName(claim: String) async throws {
    try await withIssuer(registration: .open) { issuer, cloud in
      issuer.behave {
        $0.claims = ["sub": "person-9", "email": "mallory@example.org", "email_verified": false]
        $0.claims[claim] = "victim@example.org"
      }
      let isSignedIn = try await TestBrowser.signsIn(cloud)
      #expect(isSignedIn)
      let account = try #require(
        try cloud.service.accounts.descriptions().first { $0.userName != TestCloud.userName }
      )
      #expect(account.userName == "victim")
      #expect(account.emailAddress == nil)
    }
  }

  @Test("Names at the issuer that no page could show are not taken")
  func longNames() async throws {
    try await withIssuer(registration: .open) { issuer, cloud in
      issuer.behave {
        $0.claims = [
          "sub": "person-9", "preferred_username": "grace",
          "family_name": "Hop\u{202E}per",
        ]
        $0.claims["given_name"] = .text(String(repeating: "G", count: 10_000))
      }
      let isSignedIn = try await TestBrowser.signsIn(cloud)
      #expect(isSignedIn)
      let account = try #require(
        try cloud.service.accounts.descriptions().first { $0.userName == "grace" }
      )
      #expect(account.givenName == nil)
      #expect(account.familyName == nil)
    }
  }

  @Test("Claims that only the userinfo endpoint has are requested there")
  func userInformation() async throws {
    try await withIssuer(registration: .open) { issuer, cloud in
      issuer.behave {
        $0.claims = ["sub": "person-9"]
        $0.more = ["email": "grace@example.org", "email_verified": "true"]
      }
      let isSignedIn = try await TestBrowser.signsIn(cloud)
      #expect(isSignedIn)
      let names = try cloud.service.accounts.descriptions().map(\.userName)
      #expect(names.contains("grace@example.org"))
    }
  }

  @Test("A disabled account stays disabled, and a purged one becomes a new account")
  func shutAccounts() async throws {
    try await withIssuer(registration: .open) { _, cloud in
      let browser = try await TestBrowser(cloud)
      let token = try #require(try await TestBrowser.token(browser.signIn()))
      let before = try await cloud.call("users/caller", "{}", webAuthToken: token)
      try await cloud.service.accounts.delete("ada")
      let refused = try await browser.signIn()
      #expect(refused.status == 403)
      #expect(refused.text.contains("may not sign in"))
      try await cloud.service.accounts.delete("ada", purgesNow: true)
      let next = try #require(try await TestBrowser.token(browser.signIn()))
      let after = try await cloud.call("users/caller", "{}", webAuthToken: next)
      #expect(after.text("userRecordName") != before.text("userRecordName"))
    }
  }

  // MARK: Deletion

  @Test("A user without a password here deletes the account after authenticating there again")
  func deletion() async throws {
    try await withIssuer(registration: .open) { issuer, cloud in
      let browser = try await TestBrowser(cloud)
      let token = try #require(try await TestBrowser.token(browser.signIn()))
      let page = cloud.url + "/delete-account"
      #expect(try await browser.get(page).text.contains("Continue with Test"))
      let begun = try await browser.post(page, "with=identity")
      let address = try #require(begun.headers["location"])
      #expect(address.contains("prompt=login") && address.contains("max_age=0"))
      let back = try await browser.finish(begun)
      #expect(back.text.contains("This is the account ada."))
      // Nothing has happened before the click.
      #expect(try await cloud.call("users/caller", "{}", webAuthToken: token).status == 200)

      let ticket = try #require(TestBrowser.ticket(back))
      let stranger = try await TestBrowser(cloud).post(page, "ticket=\(ticket)")
      #expect(stranger.status == 400)
      #expect(try await browser.post(page, "ticket=\(ticket)A").status == 400)
      let done = try await browser.post(page, "ticket=\(ticket)")
      #expect(done.text.contains("The account ada is disabled."))
      #expect(try await cloud.call("users/caller", "{}", webAuthToken: token).status == 421)
      #expect(try await browser.signIn().status == 403)
      let lines = try await cloud.service.auditLog.lines().lines
      #expect(lines.contains { $0.action == "account.delete" && $0.about == "ada" })
    }
  }

  @Test(
    "A new password ends what an authentication at the issuer permits",
    arguments: [true, false]
  )
  func changedPassword(isChanged: Bool) async throws {
    try await withIssuer(registration: .open) { _, cloud in
      let browser = try await TestBrowser(cloud)
      _ = try await browser.signIn()
      let page = cloud.url + "/delete-account"
      let back = try await browser.finish(browser.post(page, "with=identity"))
      let ticket = try #require(TestBrowser.ticket(back))
      if isChanged {
        try await cloud.service.accounts.change(
          "ada",
          AccountChanges(password: "tulips on the sill")
        )
      }
      let done = try await browser.post(page, "ticket=\(ticket)")
      #expect(done.status == (isChanged ? 400 : 200))
      let ada = try cloud.service.accounts.descriptions().first { $0.userName == "ada" }
      #expect(ada?.isDisabled == !isChanged)
    }
  }

  @Test(
    "An old sign-in, or one of unknown time, deletes nothing, and creates no account"
  )
  func staleProof() async throws {
    try await withIssuer(registration: .open) { issuer, cloud in
      let browser = try await TestBrowser(cloud)
      let page = cloud.url + "/delete-account"
      let refused = try await browser.finish(browser.post(page, "with=identity"))
      #expect(refused.status == 403)
      #expect(try cloud.service.accounts.descriptions().map(\.userName) == [TestCloud.userName])

      _ = try await browser.signIn()
      issuer.behave { $0.claims["auth_time"] = 1_700_000_000 }
      let stale = try await browser.finish(browser.post(page, "with=identity"))
      #expect(stale.status == 401)
      #expect(TestBrowser.ticket(stale) == nil)
      issuer.behave {
        $0.claims["auth_time"] = nil
        $0.saysWhen = false
      }
      let undated = try await browser.finish(browser.post(page, "with=identity"))
      #expect(undated.status == 401)
      #expect(TestBrowser.ticket(undated) == nil)
      issuer.behave { $0.saysWhen = true }
      let fresh = try await browser.finish(browser.post(page, "with=identity"))
      #expect(TestBrowser.ticket(fresh) != nil)
    }
  }

  @Test("The page deletes an account by its password too, and not by another account's")
  func deletionByPassword() async throws {
    try await withIssuer(registration: .open) { _, cloud in
      let browser = try await TestBrowser(cloud)
      let page = cloud.url + "/delete-account"
      let wrong = try await browser.post(page, "user=\(TestCloud.userName)&password=wrong")
      #expect(wrong.status == 401)
      #expect(try await cloud.call("users/caller", "{}").status == 200)
      let right = try await browser.post(page, "user=\(TestCloud.userName)&password=correct+horse")
      #expect(right.status == 200)
      #expect(try await cloud.call("users/caller", "{}").status == 421)
    }
  }

  @Test("A user without a password here opens the account page by a new authentication there")
  func ownPage() async throws {
    try await withIssuer(registration: .open) { issuer, cloud in
      let browser = try await TestBrowser(cloud)
      let page = cloud.url + "/my-account"
      #expect(try await browser.get(page).text.contains("Sign in with Test"))
      // Opening the page creates no account.
      let refused = try await browser.finish(browser.post(page, "with=identity"))
      #expect(refused.status == 403)
      let token = try #require(try await TestBrowser.token(browser.signIn()))
      let begun = try await browser.post(page, "with=identity")
      #expect(begun.headers["location"]?.contains("prompt=login") == true)
      let back = try await browser.finish(begun)
      #expect(back.text.contains("You are ada."))
      let ticket = try #require(TestBrowser.ticket(back))
      #expect(try await TestBrowser(cloud).post(page, "ticket=\(ticket)").status == 400)
      let deletion = cloud.url + "/delete-account"
      #expect(try await browser.post(deletion, "ticket=\(ticket)").status == 400)
      let opened = try await browser.post(page, "ticket=\(ticket)")
      #expect(opened.status == 200)
      #expect(!opened.text.contains("type=\"password\""))
      #expect(try await browser.post(page, "ticket=\(ticket)").status == 400)
      let session = try #require(
        opened.text.firstMatch(of: /name="session" type="hidden" value="([^"]+)"/)?.1
      )
      // Settings that belong to a password can only be changed with it.
      for deed in ["password&new=another+one", "address&email=a@example.org", "begin"] {
        let refused = try await browser.post(page, "session=\(session)&do=\(deed)&password=")
        #expect(refused.status == 401, "\(deed)")
      }
      let ready = try await browser.post(page, "session=\(session)&do=export")
      let link = try #require(ready.text.firstMatch(of: /href="([^"]+\/account-data\/[^"]+)"/)?.1)
      let archive = try await browser.get(String(link))
      #expect(archive.status == 200)
      #expect(archive.text.contains("person-"))
      #expect(try await browser.post(page, "session=\(session)&do=delete").status == 200)
      #expect(try await cloud.call("users/caller", "{}", webAuthToken: token).status == 421)
    }
  }

  // MARK: Programs

  @Test("A user who signs in there allows a program, after the code was shown")
  func activation() async throws {
    try await withIssuer(registration: .open) { _, cloud in
      let program = try await WaitingProgram(cloud)
      let browser = try await TestBrowser(cloud)
      let page = cloud.url + "/activate"
      let form = try await browser.get(page + "?user_code=\(program.userCode)")
      #expect(form.text.contains("Allow with Test"))
      let back = try await browser.finish(
        browser.post(page, "code=\(program.userCode)&with=identity")
      )
      #expect(back.text.contains("You are ada.") && back.text.contains(program.userCode))
      // Another site may have sent the browser there and back: no program is allowed yet.
      #expect(try await program.ask().text("error") == "authorization_pending")

      let ticket = try #require(TestBrowser.ticket(back))
      let other = try await WaitingProgram(cloud)
      let misused = try await browser.post(page, "code=\(other.userCode)&ticket=\(ticket)")
      #expect(!misused.text.contains("is signed in"))
      let done = try await browser.post(page, "code=\(program.userCode)&ticket=\(ticket)")
      #expect(done.text.contains("is signed in"))
      let again = try await browser.post(page, "code=\(program.userCode)&ticket=\(ticket)")
      #expect(again.status == 400)
      let refused = try await browser.post(
        page,
        "code=\(other.userCode)&ticket=\(ticket)&answer=deny"
      )
      #expect(refused.text.contains("Access was denied"))
    }
  }

  @Test("A ticket of one page is invalid on another")
  func ticketsOfOtherPages() async throws {
    try await withIssuer(registration: .open) { _, cloud in
      let program = try await WaitingProgram(cloud)
      let browser = try await TestBrowser(cloud)
      let back = try await browser.finish(
        browser.post(cloud.url + "/activate", "code=\(program.userCode)&with=identity")
      )
      let ticket = try #require(TestBrowser.ticket(back))
      let deletion = try await browser.post(cloud.url + "/delete-account", "ticket=\(ticket)")
      #expect(deletion.status == 400)
      #expect(try cloud.service.accounts.descriptions().allSatisfy { !$0.isDisabled })
    }
  }
}

/// A program that shows a code and polls.
private struct WaitingProgram {
  let cloud: TestCloud
  let userCode: String
  let deviceCode: String

  init(_ cloud: TestCloud) async throws {
    self.cloud = cloud
    let reply = JSONReply(
      try await cloud.post(
        cloud.url + "/account/device",
        Data("client_id=\(cloud.apiToken)&scope=\(TestCloud.container)&device_name=tool".utf8)
      )
    )
    userCode = reply.text("user_code") ?? ""
    deviceCode = reply.text("device_code") ?? ""
  }

  func ask() async throws -> JSONReply {
    let grant = "urn:ietf:params:oauth:grant-type:device_code"
    return JSONReply(
      try await cloud.post(
        cloud.url + "/account/token",
        Data("grant_type=\(grant)&device_code=\(deviceCode)&client_id=\(cloud.apiToken)".utf8)
      )
    )
  }
}
