import ArgumentParser
import Foundation

/// `watershed config`: checks and shows a server's configuration.
struct ConfigCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "config",
    abstract: "Check a server's configuration, or print it with its defaults.",
    subcommands: [Check.self, Show.self]
  )

  struct Check: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract:
        "List all errors of a configuration; exit code 2 if a server would not start."
    )

    @OptionGroup var output: OutputOptions
    @Option(help: "The file; WATERSHED_CONFIG names it too.") var config: String?

    private struct Result: Encodable {
      var isGood: Bool
      var problems: [String]
      /// Problems with which a server still starts.
      var warnings: [String]
    }

    func run() async throws {
      let found = ConfigurationSource(file: config).examine()
      let problems = found.mistakes + (found.configuration?.problems ?? [])
      let warnings = found.warnings + (found.configuration?.warnings ?? [])
      let lines = problems + warnings.map { "warning: \($0)" }
      try output.write(
        Result(isGood: problems.isEmpty, problems: problems, warnings: warnings),
        text: lines.isEmpty ? "The configuration is valid." : lines.joined(separator: "\n")
      )
      if !problems.isEmpty { throw ExitCode(ExitCodes.found) }
    }
  }

  struct Show: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Print the whole configuration, with its defaults and without its secrets."
    )

    @OptionGroup var output: OutputOptions
    @Option(help: "The file; WATERSHED_CONFIG names it too.") var config: String?

    func run() async throws {
      try await perform("the configuration cannot be read") {
        let loaded = try ConfigurationSource(file: config).load().redacted
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes]
        let text = String(decoding: try encoder.encode(loaded), as: UTF8.self)
        try output.write(loaded, text: text)
      }
    }
  }
}
