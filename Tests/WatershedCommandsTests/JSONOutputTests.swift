import ArgumentParser
import AsyncHTTPClient
import Foundation
import NIOCore
import Testing

@testable import WatershedCommands

/// Every command of the tree with `--output json`.
@Suite("Results as JSON")
struct JSONOutputTests {
  /// Commands without results: their output is a program's, a page's or a schema file's.
  private static let withoutResults: Set<String> = [
    "demo", "serve", "exec", "new", "adopt", "simulate", "model records", "model compile",
    // `--output` is a folder.
    "model generate",
  ]

  /// Commands with results that cannot be run here, and where they are tested.
  private static let elsewhere: Set<String> = [
    // A cluster.
    "storage distribute",
    // A mail server: MailConfigurationTests.
    "mail test",
    // A mirrored store: RecoveryListTests.
    "recovery list",
  ]

  /// The commands without subcommands, by their words.
  private static func leaves(
    _ command: any ParsableCommand.Type,
    _ words: [String] = []
  ) -> [String] {
    let subcommands = command.configuration.subcommands
    guard !subcommands.isEmpty else { return [words.joined(separator: " ")] }
    return subcommands.flatMap { subcommand in
      let name = subcommand.configuration.commandName ?? Self.name(of: subcommand)
      return leaves(subcommand, words + [name])
    }
  }

  /// The name that the parser makes of a type.
  private static func name(of command: any ParsableCommand.Type) -> String {
    "\(command)".replacing(/([a-z0-9])([A-Z])/) { "\($0.output.1)-\($0.output.2)" }.lowercased()
  }

  private static let publicKey = """
    -----BEGIN PUBLIC KEY-----
    MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE1DL1CuBpDReexGOv3tavViazHI8C
    GTc67P+8JkV0eIKoGbgTJbZDKkuHM3lBogU0y2wJMxDWnTkCRxdYe//jlg==
    -----END PUBLIC KEY-----
    """

  /// A server, what ran so far, and the folder of everything.
  private final class World {
    let folder: URL
    let data: String
    var ran: Set<String> = []

    init(_ folder: URL) {
      self.folder = folder
      data = folder.appendingPathComponent("data").path
    }

    func path(_ name: String) -> String { folder.appendingPathComponent(name).path }

    /// Runs a command and returns the object that it printed.
    @discardableResult
    func run(
      _ command: String,
      _ arguments: [String] = [],
      input: String? = nil,
      at place: [String]? = nil,
      exit: Int32 = 0
    ) async throws -> [String: Any] {
      ran.insert(command)
      let words = command.split(separator: " ").map(String.init) + arguments
      let outcome = try await CommandProcess(
        words + ["--output", "json"] + (place ?? ["--data", data]),
        environment: ["HOME": folder.path, "XDG_CONFIG_HOME": ""],
        input: input
      ).finish()
      #expect(outcome.exitCode == exit, "\(words): \(outcome.errors)")
      let object = try? JSONSerialization.jsonObject(with: Data(outcome.output.utf8))
      return try #require(
        object as? [String: Any],
        "\(words) printed '\(outcome.output)', and \(outcome.errors)"
      )
    }

    /// The first element of a list that a command prints.
    func first(_ name: String, of object: [String: Any]) throws -> [String: Any] {
      try #require((object[name] as? [[String: Any]])?.first)
    }
  }

  @Test(
    "Every command prints one JSON object with --output json, also where it only changes something"
  )
  func everyCommand() async throws {
    try await withTemporaryFolder { folder in
      let world = World(folder)
      try await withServer(in: folder) { server in
        try await accounts(world)
        try await containers(world)
        try await schemas(world)
        try await records(world, server.url)
        try await operation(world)
      }
      try await stopped(world)
      let all = Set(Self.leaves(WatershedCommand.self))
      #expect(
        all.subtracting(world.ran).subtracting(Self.withoutResults).subtracting(Self.elsewhere)
          .isEmpty
      )
      #expect(world.ran.union(Self.withoutResults).union(Self.elsewhere).isSubset(of: all))
    }
  }

  private func accounts(_ world: World) async throws {
    let words = "three blind mice run"
    try await world.run(
      "users add",
      ["ada", "--administrator", "--password-stdin"],
      input: words + "\n"
    )
    try await world.run("users list")
    try await world.run("users show", ["ada"])
    try await world.run("users update", ["ada", "--given-name", "Ada"])
    try await world.run("users reset-password", ["ada"])
    try await world.run("users invite")
    let place = ["--container-id", "iCloud.a"]
    try await world.run("users sign-in", ["ada", "--device", "laptop"] + place)
    let device = try world.first("devices", of: try await world.run("users devices", ["ada"]))
    try await world.run("users revoke-device", [try #require(device["id"] as? String)])
    try await world.run("users sign-in", ["ada", "--keep"] + place)
    let session = try world.first("sessions", of: try await world.run("sessions list", ["ada"]))
    try await world.run("sessions end", ["ada", try #require(session["id"] as? String)])
    try await world.run("users sign-out", ["ada"])
    // There is none: the object is the trial's.
    try await world.run("users remove-factor", ["ada", "--dry-run"])
    try await world.run("login", ["ada", "--password-stdin"], input: words + "\n")
    try await world.run("users delete", ["ada", "--dry-run"])
    try await world.run("users delete", ["ada", "--yes"])
    try await world.run("users restore", ["ada"])
    try await world.run("tokens save", ["secret", "--type", "user"], at: [])
    try await world.run("tokens forget", ["--type", "user"], at: [])
    try await world.run("cktool save", ["secret", "--type", "user"], at: [])
    try await world.run("cktool forget", ["--type", "user"], at: [])
    try await world.run("tokens forget", ["--type", "user", "--force"], at: [])
  }

  private func containers(_ world: World) async throws {
    try await world.run("containers list")
    try await world.run("containers create", ["iCloud.b"])
    try await world.run("containers delete", ["iCloud.b", "--dry-run"])
    try await world.run("containers delete", ["iCloud.b", "--yes"])
    let place = ["--container-id", "iCloud.a"]
    try await world.run("tokens own", place)
    let made = try await world.run("tokens add", place)
    try await world.run("tokens list")
    try await world.run("tokens remove", [try #require(made["token"] as? String), "--dry-run"])
    try await world.run("tokens remove", [try #require(made["token"] as? String), "--yes"])
    try Data(Self.publicKey.utf8).write(to: world.folder.appendingPathComponent("key.pem"))
    let key = try await world.run("keys add", [world.path("key.pem")] + place)
    try await world.run("keys list")
    try await world.run("keys remove", [try #require(key["keyID"] as? String), "--yes"])
  }

  private func schemas(_ world: World) async throws {
    let place = ["--container-id", "iCloud.a"]
    let file = world.folder.appendingPathComponent("app.ckdb")
    try Data(
      """
      DEFINE SCHEMA
        CREATE ROLE editor;
        RECORD TYPE Note (title STRING QUERYABLE, "___recordID" REFERENCE QUERYABLE,
          GRANT READ TO "_world", GRANT CREATE TO "_icloud", GRANT WRITE TO "_creator");
      """.utf8
    ).write(to: file)
    let given = place + ["--file", file.path]
    for group in ["schema", "cktool"] {
      try await world.run("\(group) validate", given)
      try await world.run("\(group) import", given)
      try await world.run("\(group) export", place)
    }
    try await world.run("schema import", given + ["--dry-run"])
    try await world.run("schema export", place + ["--output-file", world.path("copy.ckdb")])
    let field = place + ["--record-type", "Note", "--field", "title", "--index", "SORTABLE"]
    try await world.run("schema add-index", field)
    try await world.run("schema remove-index", field)
    // There are differences.
    try await world.run("schema diff", place, exit: 2)
    try await world.run("schema promote", place + ["--dry-run"])
    try await world.run("schema promote", place + ["--yes"])
    let signedIn = try await world.run("users sign-in", ["demo"] + place)
    let name = try #require(signedIn["userRecordName"] as? String)
    try await world.run("schema set-roles", ["editor", "--user-record-name", name] + place)
    try await world.run("schema set-roles", ["--user-record-name", name] + place)
  }

  private func records(_ world: World, _ url: String) async throws {
    let place = ["--container-id", "iCloud.a", "--user", "demo"]
    let zone = ["--zone-name", "notes"]
    try await world.run("zones create", ["notes"] + place)
    try await world.run("zones list", place)
    for group in ["records", "cktool"] {
      let note = ["--record-name", "a"] + zone + place
      try await world.run(
        "\(group) create",
        ["--record-type", "Note", "--fields-json", "{}"] + note
      )
      let fields = #"{"title":{"type":"stringType","value":"x"}}"#
      try await world.run(
        "\(group) update",
        ["--record-type", "Note", "--fields-json", fields] + note
      )
      try await world.run("\(group) query", ["--record-type", "Note"] + zone + place)
      try await world.run("records get", note)
      if group == "records" {
        try await world.run("records export", [world.path("exported")] + place)
        try await world.run("records import", [world.path("exported"), "--dry-run"] + place)
        try await world.run("records import", [world.path("exported")] + place)
        try await world.run(
          "records copy",
          ["--to-database-type", "private", "--to-environment", "production"] + place
        )
      }
      let matching = ["--record-type", "Note"] + zone + place
      try await world.run("\(group) delete-matching", matching)
      try await world.run("\(group) delete", ["--record-name", "a", "--yes"] + zone + place)
      try await world.run("\(group) delete-matching", matching + ["--dry-run", "false", "--yes"])
    }
    try await world.run("changes", zone + place)
    try await world.run("shares list", place)
    try await subscribe(world, url)
    try await world.run("subscriptions list", place)
    try await world.run("subscriptions delete", ["s", "--yes"] + place)
    try await world.run("zones delete", ["notes", "--dry-run"] + place)
    try await world.run("zones delete", ["notes", "--yes"] + place)
    let container = ["--container-id", "iCloud.a"]
    try await world.run("schema reset-development", container + ["--dry-run"])
    try await world.run("schema reset-development", container + ["--yes"])
    try await world.run("cktool reset-development", container)
  }

  /// Subscriptions are made by apps.
  private func subscribe(_ world: World, _ url: String) async throws {
    let place = ["--container-id", "iCloud.a"]
    let api = try #require(try await world.run("tokens own", place)["token"] as? String)
    let signedIn = try await world.run("users sign-in", ["demo"] + place)
    let user = try #require(signedIn["webAuthToken"] as? String)
    var request = HTTPClientRequest(
      url: url + "/database/1/iCloud.a/development/private/subscriptions/modify"
        + "?ckAPIToken=\(api)&ckWebAuthToken=\(user)"
    )
    request.method = .POST
    request.body = .bytes(
      ByteBuffer(
        string: #"{"operations":[{"operationType":"create","subscription":{"subscriptionID":"s","#
          + #""subscriptionType":"zone","zoneID":{"zoneName":"notes"}}}]}"#
      )
    )
    let reply = try await HTTPClient.shared.execute(request, timeout: .seconds(60))
    #expect(reply.status == .ok)
  }

  private func operation(_ world: World) async throws {
    for command in ["status", "server status", "usage", "assets check", "audit", "logs"] {
      try await world.run(command)
    }
    try await world.run("cktool get-teams")
    try await world.run("doctor")
    try await world.run("explain", ["CONFLICT"], at: [])
    try Data("{}".utf8).write(to: world.folder.appendingPathComponent("server.json"))
    let configuration = ["--config", world.path("server.json")]
    try await world.run("config check", configuration, at: [])
    try await world.run("config show", configuration, at: [])
    try await world.run("server rotate-key")
    try await world.run("server new-incarnation", ["--dry-run"])
    try await world.run("server new-incarnation", ["--yes"])
    try await world.run("backup create", [world.path("copy")])
    try await world.run("backup verify", [world.path("copy")], at: [])
    try await world.run("backup list", [world.folder.path], at: [])
    try await world.run("server renew-token")
  }

  private func stopped(_ world: World) async throws {
    let restored = ["--data", world.path("restored")]
    try await world.run("backup restore", [world.path("copy"), "--dry-run"], at: restored)
    try await world.run("backup restore", [world.path("copy"), "--yes"], at: restored)
    try await world.run("storage vacuum", at: restored)
    try await world.run("storage adopt", at: restored)
  }
}
