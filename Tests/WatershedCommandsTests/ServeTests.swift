import AsyncHTTPClient
import CloudKitWebServices
import Foundation
import NIOCore
import NIOFoundationCompat
import Testing

@testable import WatershedCommands

/// `watershed serve` in the built binary, with a folder and a port.
@Suite("watershed serve")
struct ServeTests {
  @Test("The banner as JSON is one line with a valid token, container and account")
  func bannerWorks() async throws {
    try await withTemporaryFolder { folder in
      let server = try CommandProcess(
        "serve",
        "--json",
        "--port",
        "0",
        "--data",
        folder.path,
        "--container",
        "iCloud.a.b"
      )
      let banner = try await Banner(server.nextLine())
      #expect(banner.container == "iCloud.a.b")
      #expect(banner.environment == "development")
      #expect(banner.swift.contains(banner.apiToken))
      #expect(banner.swift.contains("NSPersistentCloudKitContainer"))
      #expect(banner.javaScript.contains("publicDatabasePartition: '\(banner.url)'"))
      let asked = banner.curl.dropFirst("curl '".count).dropLast()
      #expect(try await get(String(asked)).status == 200, "\(banner.curl)")
      let caller =
        "\(banner.url)/database/1/iCloud.a.b/development/public/users/caller"
        + "?ckAPIToken=\(banner.apiToken)"
      #expect(try await get(caller).status == 421)
      #expect(try await get(caller + "&ckWebAuthToken=\(banner.webAuthToken)").status == 200)
      #expect(try await get(banner.signInURL).status == 200)
      let page = try await get(banner.url + "/")
      #expect(page.text.contains("iCloud.a.b"))
      server.terminate()
      let outcome = try await server.finish()
      #expect(outcome.exitCode == 0)
      #expect(outcome.output.isEmpty)
    }
  }

  @Test("The banner's commands name the server's folder, quoted for a shell")
  func commands() {
    func text(_ environment: ContainerEnvironment, _ folder: String) -> String {
      let credentials = InitialCredentials(
        container: "iCloud.a",
        environment: environment,
        apiToken: "t",
        guest: nil,
        invitation: nil
      )
      return ServeBanner(credentials: credentials, url: "http://a", dataFolder: folder).text
    }
    let plain = text(.development, "/srv/x")
    #expect(plain.contains("  watershed users add NAME --data /srv/x\n"))
    let quoted = text(.production, "/srv/ada's data")
    #expect(
      quoted.contains(#"users invite --data '/srv/ada'\''s data' prints a link"#),
      "\(quoted)"
    )
  }

  @Test("Ctrl-C ends a server that has not printed its address yet")
  func interruptedStart() async throws {
    try await withTemporaryFolder { folder in
      let data = folder.appendingPathComponent("data")
      let server = try CommandProcess("serve", "--port", "0", "--data", data.path)
      // The operator's token is written while the server starts.
      let token = data.appendingPathComponent("admin-token").path
      while !FileManager.default.fileExists(atPath: token) { await Task.yield() }
      server.interrupt()
      #expect(try await server.finish().exitCode != 0)
    }
  }

  @Test(
    "In production there is no guest account: the banner has an invitation for one administrator"
  )
  func production() async throws {
    try await withTemporaryFolder { folder in
      let flags = [
        "serve", "--json", "--port", "0", "--data", folder.path, "--environment", "production",
      ]
      let server = try CommandProcess(flags)
      let line = try #require(try await server.nextLine())
      let facts = try #require(
        try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
      )
      #expect(facts["account"] == nil)
      #expect(facts["webAuthToken"] == nil)
      let link = try #require(facts["invitationURL"] as? String)
      #expect(try await get(link).text.contains("Create the account"))
      let form = "user=ada&password=tulips+on+the+sill"
      #expect(try await post(link, form).text.contains("was created"))
      server.terminate()
      _ = try await server.finish()
      let users = try await CommandProcess.run("users", "list", "--data", folder.path)
      #expect(users.output.contains("ada"))
      #expect(!users.output.contains("demo"))
      // The administrator invites the others.
      let again = try CommandProcess(flags)
      #expect(try await again.nextLine()?.contains("invitationURL") == false)
      again.terminate()
      _ = try await again.finish()
    }
  }

  @Test(
    "A query without a filter is refused in development, unless the server was started to allow it"
  )
  func unindexedQueries() async throws {
    for (flags, expected) in [([], 400), (["--allow-unindexed-queries"], 200)] {
      try await withTemporaryFolder { folder in
        let server = try CommandProcess(
          ["serve", "--json", "--port", "0", "--data", folder.path] + flags
        )
        let banner = try await Banner(server.nextLine())
        let database = "\(banner.url)/database/1/\(banner.container)/development/private"
        let tokens = "?ckAPIToken=\(banner.apiToken)&ckWebAuthToken=\(banner.webAuthToken)"
        let record = #"{"recordName":"a","recordType":"Note","fields":{"t":{"value":"x"}}}"#
        let saved = try await post(
          "\(database)/records/modify\(tokens)",
          #"{"operations":[{"operationType":"create","record":"# + record + "}]}"
        )
        #expect(saved.status == 200)
        let found = try await post(
          "\(database)/records/query\(tokens)",
          #"{"query":{"recordType":"Note"}}"#
        )
        #expect(found.status == expected)
        server.terminate()
        _ = try await server.finish()
      }
    }
  }

  @Test("A second start keeps tokens and accounts, and does not print the password again")
  func secondStartKeepsEverything() async throws {
    try await withTemporaryFolder { folder in
      var banners: [Banner] = []
      for _ in 0..<2 {
        let server = try CommandProcess("serve", "--json", "--port", "0", "--data", folder.path)
        banners.append(try await Banner(server.nextLine()))
        server.terminate()
        #expect(try await server.finish().exitCode == 0)
      }
      #expect(banners[0].apiToken == banners[1].apiToken)
      #expect(banners[0].password != nil)
      #expect(banners[1].password == nil)
    }
  }

  @Test("A port or folder in use, and an impossible folder, cause one sentence and exit code 1")
  func refusalsAreSentences() async throws {
    try await withTemporaryFolder { folder in
      let data = folder.appendingPathComponent("data").path
      let server = try CommandProcess("serve", "--json", "--port", "0", "--data", data)
      let banner = try await Banner(server.nextLine())
      let port = try #require(URL(string: banner.url)?.port)

      let samePort = try await CommandProcess.run(
        "serve",
        "--port",
        "\(port)",
        "--data",
        folder.appendingPathComponent("other").path
      )
      #expect(samePort.exitCode == 1)
      #expect(samePort.errors.contains("Port \(port) on 127.0.0.1 is in use"))
      #expect(samePort.output.isEmpty)

      let sameFolder = try await CommandProcess.run("serve", "--port", "0", "--data", data)
      #expect(sameFolder.exitCode == 1)
      #expect(sameFolder.errors.contains("Another server uses the data folder"))

      let file = folder.appendingPathComponent("file")
      try Data().write(to: file)
      let noFolder = try await CommandProcess.run(
        "serve",
        "--port",
        "0",
        "--data",
        file.appendingPathComponent("data").path
      )
      #expect(noFolder.exitCode == 1)
      #expect(noFolder.errors.contains("cannot be written"))
      for outcome in [samePort, sameFolder, noFolder] {
        #expect(outcome.errors.split(separator: "\n").count == 1)
      }
      server.terminate()
      #expect(try await server.finish().exitCode == 0)
    }
  }

  @Test("Data of a newer server is refused in a sentence and not changed")
  func newerDataIsRefused() async throws {
    try await withTemporaryFolder { folder in
      let server = try CommandProcess("serve", "--json", "--port", "0", "--data", folder.path)
      _ = try await server.nextLine()
      server.terminate()
      _ = try await server.finish()
      // The format's number is the user version in SQLite's header, at byte 60.
      let file = folder.appendingPathComponent("watershed.sqlite")
      var bytes = try Data(contentsOf: file)
      bytes.replaceSubrange(60..<64, with: [0, 0, 3, 231])
      try bytes.write(to: file)
      let outcome = try await CommandProcess.run("serve", "--port", "0", "--data", folder.path)
      #expect(outcome.exitCode == 1)
      #expect(outcome.errors.contains("has format 999"))
      #expect(try Data(contentsOf: file)[60..<64] == Data([0, 0, 3, 231]))
    }
  }

  @Test("Acknowledged changes are there after kill -9, each of six times")
  func acknowledgedSavesSurviveKilling() async throws {
    try await withTemporaryFolder { folder in
      var person: String?
      for round in 0...6 {
        let server = try CommandProcess("serve", "--json", "--port", "0", "--data", folder.path)
        let banner = try await Banner(server.nextLine())
        let token = person ?? banner.webAuthToken
        person = token
        let base = "\(banner.url)/database/1/\(banner.container)/development/private/records"
        let query = "?ckAPIToken=\(banner.apiToken)&ckWebAuthToken=\(token)"
        let names = (0..<round).map { "{\"recordName\":\"r\($0)\"}" }.joined(separator: ",")
        let found = try await post(base + "/lookup" + query, "{\"records\":[\(names)]}")
        #expect(found.text.components(separatedBy: "recordChangeTag").count - 1 == round)
        let saved = try await post(
          base + "/modify" + query,
          """
          {"operations":[{"operationType":"create","record":{"recordName":"r\(round)",
          "recordType":"Note","fields":{"title":{"value":"\(round)","type":"STRING"}}}}]}
          """
        )
        #expect(saved.status == 200)
        server.kill()
        #expect(try await server.finish().exitCode == SIGKILL)
      }
    }
  }

  @Test("An added person is listed, and a name can be added once")
  func addsAccounts() async throws {
    try await withTemporaryFolder { folder in
      try await makeData(in: folder.path)
      let anna = ["users", "add", "anna", "--data", folder.path, "--output", "text"]
      let added = try await CommandProcess(anna).finish()
      #expect(added.exitCode == 0)
      #expect(added.output.hasPrefix("Added anna, password "))
      let again = try await CommandProcess(anna).finish()
      #expect(again.exitCode == 1)
      #expect(again.errors.contains("There is an account \"anna\" already."))
      let list = try await CommandProcess.run(
        "users",
        "list",
        "--data",
        folder.path,
        "--output",
        "text"
      )
      #expect(list.output.contains("anna"))
    }
  }

  private struct Banner {
    var url, container, environment, apiToken, webAuthToken, signInURL, swift, javaScript,
      curl: String
    var password: String?

    init(_ line: String?) throws {
      let line = try #require(line, "the server ended before its banner")
      let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
      let facts = try #require(object)
      func text(_ key: String) throws -> String { try #require(facts[key] as? String) }
      url = try text("url")
      container = try text("container")
      environment = try text("environment")
      apiToken = try text("apiToken")
      webAuthToken = try text("webAuthToken")
      signInURL = try text("signInURL")
      swift = try text("swift")
      javaScript = try text("javaScript")
      curl = try text("curl")
      password = (facts["account"] as? [String: Any])?["password"] as? String
    }
  }

  private func get(_ url: String) async throws -> (status: Int, text: String) {
    try await send(HTTPClientRequest(url: url))
  }

  private func post(_ url: String, _ body: String) async throws -> (status: Int, text: String) {
    var request = HTTPClientRequest(url: url)
    request.method = .POST
    request.body = .bytes(ByteBuffer(string: body))
    return try await send(request)
  }

  private func send(_ request: HTTPClientRequest) async throws -> (status: Int, text: String) {
    let response = try await HTTPClient.shared.execute(request, timeout: .minutes(10))
    let body = try await response.body.collect(upTo: 1_000_000)
    return (Int(response.status.code), String(buffer: body))
  }
}
