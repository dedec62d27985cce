import ArgumentParser
import CloudKitServer
import Effects

/// `watershed storage`: commands for a server's database.
struct StorageCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "storage",
    abstract: "Maintain the database of servers.",
    subcommands: [Distribute.self, Adopt.self, Vacuum.self]
  )

  /// `watershed storage adopt`.
  struct Adopt: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Use a stopped server's data with this key file and asset store from now on.",
      discussion: """
        For a key file or an asset store that is lost permanently. Values encrypted with a lost key stay \
        unreadable, and files of a lost store stay missing. A missing key file is created.
        """
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions
    @OptionGroup var consent: ConsentOptions

    private struct Adopted: Encodable {
      var abandoned: [String]
    }

    func run() async throws {
      try await perform("nothing was adopted") {
        let settings = try server.settings()
        var configuration = ServiceConfiguration(
          dataFolder: settings.dataURL,
          database: settings.database
        )
        try settings.apply(to: &configuration, token: "", LogSettings.logger(settings))
        guard try configuration.hasData() else {
          throw CommandFailure(
            "NO_DATA",
            what: "there is nothing to adopt",
            why: "it has no data of a server",
            next: "name the server with --data, --database or --config"
          )
        }
        let held = try DataFolder(opening: settings.data)
        defer { held.close() }
        let adoption = try await StorageAdoption(configuration)
        var losses = adoption.lostKeys.map { "the values encrypted with key \($0)" }
        if adoption.hasLostAssets { losses.append("the files of the former asset store") }
        guard !losses.isEmpty else {
          return try output.done(
            "Key file and asset store are the data's own already.",
            Adopted(abandoned: [])
          )
        }
        let deed = "abandon \(losses.joined(separator: " and "))"
        guard try consent.isGiven(to: deed, output) else { return }
        try await adoption.run()
        try output.done("Adopted.", Adopted(abandoned: losses))
      }
    }
  }

  /// `watershed storage distribute`.
  struct Distribute: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Distribute the tables over the machines of a Citus cluster.",
      discussion: """
        Each user's database stays on one machine. Run it once a server has made the tables, best \
        while none runs: rows that are there move. Running it again does only what is missing.
        """
    )

    @Option(help: "The coordinator, as postgresql://USER@HOST/NAME.")
    var database: String

    @OptionGroup var output: OutputOptions

    private struct Table: Encodable {
      var table: String
      var kind: String
      var isUnchanged: Bool
    }

    func run() async throws {
      let outcomes = try StorageDistribution(url: database).run()
      guard output.output == nil else {
        let tables = outcomes.map {
          Table(table: $0.table, kind: $0.kind.rawValue, isUnchanged: $0.isUnchanged)
        }
        return try output.write(
          "tables",
          tables,
          columns: tables.map { [$0.table, $0.kind, $0.isUnchanged ? "unchanged" : ""] },
          titles: ["table", "kind", ""]
        )
      }
      for outcome in outcomes {
        let note = outcome.isUnchanged && outcome.kind != .local ? " (already)" : ""
        try StandardOutput.print("\(outcome.table): \(outcome.kind.rawValue)\(note)")
      }
    }
  }
}
