import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

@Suite("Access control", .everyEngine)
struct AccessTests {
  private func response(_ person: Person) async -> (Int, ErrorDictionary?) {
    let response = await person.send(.listZones, Data("{}".utf8))
    return (response.status, try? WireCoding.decode(ErrorDictionary.self, from: response.body))
  }

  @Test("An API token that is missing, unknown or for another environment is refused")
  func apiTokens() async throws {
    let person = try await TestServer().person()
    for token in ["", "x", person.apiToken ?? ""] {
      var wrong = person
      wrong.apiToken = token
      let (status, error) = await response(wrong)
      #expect(status == 401)
      #expect(error?.serverErrorCode == .authenticationFailed)
    }
    var production = person
    production.environment = .production
    #expect(await response(production).0 == 401)
    production.apiToken = try await person.server.service.createAPIToken(
      container: TestServer.container,
      environment: .production
    )
    #expect(await response(production).0 == 200)
    var elsewhere = person
    elsewhere.apiToken = try await person.server.service.createAPIToken(container: "iCloud.other")
    #expect(await response(elsewhere).0 == 401)
  }

  @Test("An API token may be restricted to pages of some origins")
  func origins() async throws {
    let server = try await TestServer()
    var person = try await server.person()
    person.apiToken = try await server.service.createAPIToken(
      container: TestServer.container,
      allowedOrigins: ["https://app.example"]
    )
    #expect(await response(person).0 == 200)
    person.origin = "https://app.example"
    let fine = await person.send(.listZones, Data())
    #expect(fine.status == 200)
    #expect(fine.headers["access-control-allow-origin"] == "https://app.example")
    person.origin = "https://evil.example"
    #expect(await response(person).0 == 401)
    let hidden = await person.send(.listZones, Data())
    #expect(hidden.headers["access-control-allow-origin"] == nil)
    #expect(hidden.headers["vary"] == "Origin")
  }

  @Test("Without a user, or with a wrong token, a private database redirects to the sign-in page")
  func signInNeeded() async throws {
    let server = try await TestServer()
    _ = try await server.person()
    for token in [nil, "null", "", "wrong"] {
      var visitor = server.visitor
      visitor.webAuthToken = token
      let (status, error) = await response(visitor)
      #expect(status == 421)
      #expect(error?.serverErrorCode == .authenticationRequired)
      let page = try #require(error?.redirectURL)
      #expect(page.hasPrefix("http://127.0.0.1:8080/sign-in?ckAPIToken="))
    }
  }

  @Test("A web token is for its container, is returned with each reply, and use renews it")
  func webTokens() async throws {
    let server = try await TestServer()
    let person = try await server.person()
    let reply = await person.send(.listZones, Data())
    #expect(reply.headers[WebServiceName.webAuthTokenHeader] == person.webAuthToken)
    // Two weeks after the last use.
    for _ in 0..<3 {
      server.clock.advance(seconds: 8 * 24 * 3600)
      #expect(await response(person).0 == 200)
    }
    server.clock.advance(seconds: 14 * 24 * 3600 + 1)
    #expect(await response(person).0 == 421)

    try await server.service.createAccount(userName: "eve", password: "x")
    var other = server.visitor
    other.webAuthToken = try await server.service.signIn(userName: "eve", container: "iCloud.o")
    #expect(await response(other).0 == 421)
  }

  @Test("A user has another name in each container")
  func userNames() async throws {
    let server = try await TestServer()
    let person = try await server.person()
    let here: UserIdentity = try await person.call(.caller, [String: String](), in: .public)
    #expect(here.nameComponents?.givenName == "Ada")
    #expect(here.firstName == "Ada")
    let name = try #require(here.userRecordName)
    #expect(name.wholeMatch(of: /_[0-9a-f]{32}/) != nil)
    let again: UserIdentity = try await person.call(.currentUser, [String: String]())
    #expect(again == here)
    // The user's own record exists.
    #expect(try await person.lookup(name, in: .public, zone: nil).recordType == "Users")
  }

  @Test("Users are found by e-mail address and by name, and unknown people are left out")
  func lookups() async throws {
    let server = try await TestServer()
    let (ada, _) = (try await server.person("ada"), try await server.person("bob"))
    let wanted = ["BOB@example.com", "nobody@example.com"].map { LookupInfo(emailAddress: $0) }
    let found: UsersResponse = try await ada.call(
      .discoverUsers,
      DiscoverUsersRequest(lookupInfos: wanted),
      in: .public
    )
    #expect(found.users.map { $0.item?.nameComponents?.givenName } == ["Bob"])
    let name = found.users[0].item?.userRecordName
    let byName: UsersResponse = try await ada.call(
      .lookupUsersByID,
      LookupUsersRequest(users: [LookupInfo(userRecordName: name)]),
      in: .public
    )
    #expect(byName.users[0].item?.userRecordName == name)
    #expect(
      try await ada.failure(.discoverUsers, DiscoverUsersRequest()).serverErrorCode == .badRequest
    )
  }

  // MARK: The public database

  @Test(
    "In the public database a name with a leading _ has printable ASCII and the usual length",
    arguments: [
      (String(repeating: "a", count: 254), true), (String(repeating: "a", count: 255), false),
      (String(repeating: "\u{1}", count: 9), false), ("\u{e9}", false), ("a\nb", false),
    ]
  )
  func publicNames(rest: String, isName: Bool) async throws {
    let ada = try await TestServer().person()
    let update = RecordOperation.make(.update, "_" + rest, ["n": .int64(1)], tag: "x")
    let error = try await ada.modify([update], in: .public, zone: nil)[0].error
    #expect(error?.serverErrorCode == (isName ? .notFound : .badRequest))
    #expect(error?.reason?.hasPrefix("invalid record name") == !isName)
  }

  @Test("In the public database anyone reads, signed-in users create, and the creator writes")
  func publicGrants() async throws {
    let server = try await TestServer()
    let (ada, bob) = (try await server.person("ada"), try await server.person("bob"))
    try await ada.save(.create, "r", ["n": .int64(1)], in: .public, zone: nil)
    #expect(try await server.visitor.lookup("r", in: .public, zone: nil).content("n") == .int64(1))
    #expect(try await bob.lookup("r", in: .public, zone: nil).content("n") == .int64(1))
    let denied = try await bob.modify(
      [.make(.forceUpdate, "r", ["n": .int64(2)]), .make(.create, "s")],
      in: .public,
      zone: nil
    )
    #expect(denied.map { $0.error?.serverErrorCode } == [.accessDenied, nil])
    let visitor = await #expect(throws: ErrorDictionary.self) {
      try await server.visitor.save(.create, "t", in: .public, zone: nil)
    }
    #expect(visitor?.serverErrorCode == .authenticationRequired)
    try await ada.save(.forceDelete, "r", in: .public, zone: nil)
    await #expect(throws: ErrorDictionary.self) {
      try await ada.lookup("r", in: .public, zone: nil)
    }
    // Public records can be created again after a deletion without a tombstone.
    try await bob.save(.create, "r", in: .public, zone: nil)
  }

  @Test("A schema's grants decide who may read")
  func readGrants() async throws {
    let server = try await TestServer()
    let (ada, bob) = (try await server.person("ada"), try await server.person("bob"))
    try await ada.save(.create, "r", ["n": .int64(1)], in: .public, zone: nil)
    var schema = try server.service.schemas.schema(
      container: TestServer.container,
      environment: .development
    )
    for index in schema.recordTypes.indices where schema.recordTypes[index].name == "Note" {
      schema.recordTypes[index].grants = [
        SchemaGrant(role: SchemaGrant.creator, permissions: [.read, .write])
      ]
    }
    try await server.service.schemas.setSchema(
      schema,
      container: TestServer.container,
      environment: .development
    )
    #expect(try await ada.lookup("r", in: .public, zone: nil).recordName == "r")
    let error = await #expect(throws: ErrorDictionary.self) {
      try await bob.lookup("r", in: .public, zone: nil)
    }
    #expect(error?.serverErrorCode == .accessDenied)
    let query = RecordQuery(
      recordType: "Note",
      filterBy: [
        QueryFilter(comparator: .equals, fieldName: "n", fieldValue: FieldValue(.int64(1)))
      ]
    )
    #expect(try await ada.query(query, in: .public, zone: nil).names == ["r"])
    #expect(try await bob.query(query, in: .public, zone: nil).names.isEmpty)
  }

  @Test("A user's record is written by that user, and never created or deleted by a request")
  func usersRecord() async throws {
    let server = try await TestServer()
    let (ada, bob) = (try await server.person("ada"), try await server.person("bob"))
    let user: UserIdentity = try await ada.call(.caller, [String: String](), in: .public)
    let name = try #require(user.userRecordName)
    try await ada.save(
      .forceUpdate,
      name,
      ["bio": .string("x")],
      recordType: "Users",
      in: .public,
      zone: nil
    )
    let denied = try await bob.modify(
      [.make(.forceUpdate, name, ["bio": .string("y")], recordType: "Users")],
      in: .public,
      zone: nil
    )
    #expect(denied[0].error?.serverErrorCode == .accessDenied)
    let made = try await bob.modify(
      [.make(.create, "_other", recordType: "Users")],
      in: .public,
      zone: nil
    )
    #expect(made[0].error?.serverErrorCode == .accessDenied)
  }

  // MARK: The sign-in page

  @Test("The page signs in with a form and posts the token to the requesting page")
  func signInPage() async throws {
    let server = try await TestServer()
    _ = try await server.person()
    var visitor = server.visitor
    visitor.origin = "http://localhost:3000"
    let (_, error) = await response(visitor)
    let url = try #require(error?.redirectURL)
    let path = String(url.dropFirst("http://127.0.0.1:8080".count))
    let form = await server.send("GET", path)
    #expect(form.status == 200)
    #expect(form.headers["content-type"] == "text/html; charset=UTF-8")
    #expect(String(decoding: form.body, as: UTF8.self).contains("<form method=\"post\">"))

    let wrong = await server.send("POST", path, body: Data("user=ada&password=no".utf8))
    #expect(wrong.status == 401)
    #expect(!String(decoding: wrong.body, as: UTF8.self).contains("ckWebAuthToken"))

    let right = await server.send("POST", path, body: Data("user=ada&password=secret&keep=on".utf8))
    let html = String(decoding: right.body, as: UTF8.self)
    #expect(right.status == 200)
    // Only to that page, after a click, and not before.
    #expect(html.contains(#"const origin = "http://localhost:3000""#))
    #expect(html.contains("Let http://localhost:3000 use your data"))
    #expect(html.contains(#"getElementById("allow").addEventListener("click""#))
    let policy = try #require(right.headers["content-security-policy"])
    let nonce = try #require(policy.firstMatch(of: /'nonce-([0-9a-f]+)'/)?.1)
    #expect(html.contains("<script nonce=\"\(nonce)\">"))
    // A window that cannot close says what to do.
    #expect(html.contains("You can close this window."))
    let token = try #require(html.firstMatch(of: /const token = "([^"]+)"/)?.1)
    visitor.webAuthToken = String(token)
    #expect(await response(visitor).0 == 200)
  }

  @Test(
    "The token is sent only to pages that the API token names, or to its redirect URL"
  )
  func tokenTransfer() async throws {
    let server = try await TestServer()
    _ = try await server.person()
    let body = Data("user=ada&password=secret".utf8)
    let page = "container=\(TestServer.container)"
    let evil = await server.send(
      "POST",
      "/sign-in?ckAPIToken=\(server.apiToken)&\(page)&origin=https://evil.example",
      body: body
    )
    #expect(!String(decoding: evil.body, as: UTF8.self).contains("evil.example"))
    #expect(!String(decoding: evil.body, as: UTF8.self).contains("<script"))
    // Nor does a link that was made for another page.
    var asker = server.visitor
    asker.origin = "http://localhost:3000"
    let bound = try #require(await response(asker).1?.redirectURL)
    let moved = bound.replacing("origin=http%3A%2F%2Flocalhost%3A3000", with: "origin=https://evil")
      .dropFirst("http://127.0.0.1:8080".count)
    let stolen = await server.send("POST", String(moved), body: body)
    #expect(!String(decoding: stolen.body, as: UTF8.self).contains("evil"))
    let token = try await server.service.createAPIToken(
      container: TestServer.container,
      redirectURL: "org.example.myapp://signed-in"
    )
    let redirect = await server.send("POST", "/sign-in?ckAPIToken=\(token)&\(page)", body: body)
    #expect(redirect.status == 303)
    #expect(
      redirect.headers["location"]?.hasPrefix("org.example.myapp://signed-in?ckWebAuthToken=")
        == true
    )
    #expect(await server.send("GET", "/sign-in?ckAPIToken=x&\(page)").status == 401)
    let script = await server.send(
      "GET",
      "/sign-in?ckAPIToken=\(server.apiToken)&container=%3Cscript%3E"
    )
    #expect(!String(decoding: script.body, as: UTF8.self).contains("<strong><script>"))
  }

  @Test("The state of an app's sign-in link is returned with the token")
  func state() async throws {
    let server = try await TestServer()
    _ = try await server.person()
    let token = try await server.service.createAPIToken(
      container: TestServer.container,
      redirectURL: "org.example.myapp://signed-in"
    )
    let path = "/sign-in?ckAPIToken=\(token)&container=\(TestServer.container)"
    let body = Data("user=ada&password=secret".utf8)
    let redirect = await server.send("POST", "\(path)&state=a%26b%20c", body: body)
    #expect(redirect.headers["location"]?.hasSuffix("&state=a%26b%20c") == true)
    let long = String(repeating: "x", count: 513)
    #expect(await server.send("POST", "\(path)&state=\(long)", body: body).status == 401)
  }

  @Test(
    "A form that another site's page sends is refused",
    arguments: [
      (["origin": "https://evil.example"], 403), (["sec-fetch-site": "cross-site"], 403),
      (["sec-fetch-site": "same-site", "origin": "null"], 403),
      (["sec-fetch-site": "same-origin", "origin": "null"], 200), (["origin": "null"], 403),
      (["origin": "http://127.0.0.1:8080", "host": "127.0.0.1:8080"], 200), ([:], 200),
      // Another port of the machine is another site's.
      (["origin": "http://nas:9000", "host": "nas:8080"], 403),
      (["origin": "http://nas:8080", "host": "nas:8080"], 200),
      // A proxy ends TLS.
      (["origin": "https://cloud.example", "host": "cloud.example"], 200),
      (["origin": "https://a@cloud.example", "host": "cloud.example"], 403),
    ]
  )
  func foreignForms(headers: [String: String], status: Int) async throws {
    let server = try await TestServer()
    _ = try await server.person()
    let page = "/sign-in?ckAPIToken=\(server.apiToken)&container=\(TestServer.container)"
    let response = await server.service.respond(
      to: WebServiceRequest(
        method: "POST",
        path: page,
        headers: headers,
        body: Data("user=ada&password=secret".utf8)
      )
    )
    #expect(response.status == status)
  }

  @Test(
    "In production a page of the user's machine gets a token only if the API token allows it"
  )
  func localPages() async throws {
    let server = try await TestServer()
    _ = try await server.person()
    for (origins, environment, isHandedOver) in [
      ([], ContainerEnvironment.development, true), ([], .production, false),
      (["http://localhost:3000"], .production, true),
    ] {
      var asker = server.visitor
      asker.environment = environment
      asker.apiToken = try await server.service.createAPIToken(
        environment: environment,
        allowedOrigins: origins
      )
      asker.origin = "http://localhost:3000"
      let link = try #require(await response(asker).1?.redirectURL)
      let page = await server.send(
        "POST",
        String(link.dropFirst("http://127.0.0.1:8080".count)),
        body: Data("user=ada&password=secret".utf8)
      )
      #expect(page.status == 200)
      let html = String(decoding: page.body, as: UTF8.self)
      #expect(html.contains("const token") == isHandedOver, "\(environment) \(origins)")
    }
  }

  @Test("A page that may not have a token gets the error before a password is typed")
  func refusedOrigins() async throws {
    let server = try await TestServer()
    for (environment, redirectURL, origin, status) in [
      (ContainerEnvironment.production, nil, "http://localhost:3000", 403),
      (.production, nil, "https://<i>.example", 403), (.development, nil, "null", 403),
      (.development, nil, "http://localhost:3000", 200),
      (.production, "https://app.example.org/signed-in", "http://localhost:3000", 200),
    ] as [(ContainerEnvironment, String?, String, Int)] {
      var asker = server.visitor
      asker.environment = environment
      asker.apiToken = try await server.service.createAPIToken(
        environment: environment,
        redirectURL: redirectURL
      )
      asker.origin = origin
      let link = try #require(await response(asker).1?.redirectURL)
      let page = await server.send(
        "GET",
        String(link.dropFirst("http://127.0.0.1:8080".count))
      )
      let html = String(decoding: page.body, as: UTF8.self)
      #expect(page.status == status, "\(environment) \(origin)")
      #expect(html.contains("name=\"password\"") == (status == 200))
      #expect(html.contains("errorMessage") == (status == 403))
      #expect(!html.contains("<i>"))
    }
  }

  @Test("After ten wrong passwords an account is locked", arguments: [9, 10])
  func guessing(failures: Int) async throws {
    let server = try await TestServer()
    _ = try await server.person()
    func signIn(_ password: String) async -> ServerErrorCode? {
      do {
        _ = try await server.service.signIn(
          userName: "Ada",
          password: password,
          container: TestServer.container
        )
        return nil
      } catch { return (error as? ErrorDictionary)?.serverErrorCode }
    }
    for _ in 0..<failures { #expect(await signIn("no") == .authenticationFailed) }
    #expect(await signIn("secret") == (failures < 10 ? nil : .throttled))
    server.clock.advance(seconds: 15 * 60 + 1)
    #expect(await signIn("secret") == nil)
  }

  @Test("A browser's preflight request gets a reply")
  func preflight() async throws {
    let server = try await TestServer()
    let response = await server.service.respond(
      to: WebServiceRequest(
        method: "OPTIONS",
        path: "/database/1/c/development/public/records/query",
        headers: ["origin": "https://app.example", "access-control-request-headers": "x-a"]
      )
    )
    #expect(response.status == 204)
    #expect(response.headers["allow"] == "GET, POST, PUT, DELETE")
    #expect(response.headers["access-control-allow-headers"] == "x-a")
  }
}
