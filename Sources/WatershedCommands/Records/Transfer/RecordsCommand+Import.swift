import ArgumentParser
import CloudKitWebServices
import Foundation

extension RecordsCommand {
  struct Import: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Save the records of a folder that `records export` wrote.",
      discussion: """
        Zones are created. A record that exists already is left unchanged, so that the command can be run again, \
        unless --replace is given. Records that refer to others are saved after them. What was refused is \
        listed, with exit code 2.
        """
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions
    @OptionGroup var database: DatabaseOptions
    @OptionGroup var consent: ConsentOptions
    @Flag(help: "Replace records that exist already; it asks before.") var replace = false
    @Argument(help: "The folder.") var folder: String

    func run() async throws {
      try await perform("the import was not completed") {
        let source = RecordFolder(url: URL(fileURLWithPath: folder).standardizedFileURL)
        let count = try RecordImport.check(source)
        guard try Self.mayRun(replace, count, database, consent, output) else { return }
        let result = try await server.connect { connection in
          try await database.use(connection, printsFiles: false) {
            var work = RecordImport($0, from: source, replaces: replace)
            try await work.run()
            return work.result
          }
        }
        try Self.show(result, output)
      }
    }

    /// Whether the import may begin: only replaced records lose something.
    static func mayRun(
      _ replaces: Bool,
      _ count: Int,
      _ database: DatabaseOptions,
      _ consent: ConsentOptions,
      _ output: OutputOptions
    ) throws -> Bool {
      guard database.databaseType != .shared else {
        throw ValidationError(
          "Records are imported into a private or the public database: zones are created by their owner."
        )
      }
      let deed =
        "save \(Count.of(count, "record")) in \(database.containerId)"
        + (replaces ? " and replace those that exist there under the same names" : "")
      if replaces || consent.dryRun { return try consent.isGiven(to: deed, output) }
      return true
    }

    static func show(_ result: RecordImport.Result, _ output: OutputOptions) throws {
      var text = "\(result.created) created, \(result.replaced) replaced"
      if result.unchanged > 0 { text += ", \(result.unchanged) existed and were left unchanged" }
      for failure in result.failures {
        text += "\n\(failure.zoneName)/\(failure.recordName): \(failure.code): \(failure.reason)"
      }
      try output.write(result, text: text)
      if !result.failures.isEmpty { throw ExitCode(ExitCodes.found) }
    }
  }
}
