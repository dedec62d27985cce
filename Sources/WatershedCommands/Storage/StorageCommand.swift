import ArgumentParser
import CloudKitServer

/// `watershed storage`: the database behind a server.
struct StorageCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "storage",
    abstract: "Look after the PostgreSQL that servers keep their data in.",
    subcommands: [Distribute.self]
  )

  /// `watershed storage distribute`.
  struct Distribute: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Spread the tables over the machines of a Citus cluster.",
      discussion: """
        Each user's database stays on one machine. Run it once a server has made the tables, best \
        while none runs: rows that are there move. Running it again does only what is missing.
        """
    )

    @Option(help: "The coordinator, as postgresql://USER@HOST/NAME.")
    var database: String

    func run() async throws {
      for outcome in try StorageDistribution(url: database).run() {
        let note = outcome.isUnchanged && outcome.kind != .local ? " (already)" : ""
        print("\(outcome.table): \(outcome.kind.rawValue)\(note)")
      }
    }
  }
}
