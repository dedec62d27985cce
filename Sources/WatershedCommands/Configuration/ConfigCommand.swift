import ArgumentParser
import Foundation

/// `watershed config`: how a server would be run.
struct ConfigCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "config",
    abstract: "Check a server's configuration, or show what it comes to.",
    subcommands: [Check.self, Show.self]
  )

  struct Check: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Say everything that is wrong with a configuration; exit code 2 if there is any."
    )

    @OptionGroup var output: OutputOptions
    @Option(help: "The file; WATERSHED_CONFIG names it too.") var config: String?

    private struct Result: Encodable {
      var isGood: Bool
      var problems: [String]
    }

    func run() async throws {
      let problems: [String]
      do {
        problems = try ConfigurationSource(file: config).load().problems
      } catch let error as ConfigurationSource.Unreadable {
        problems = error.problems
      }
      try output.write(
        Result(isGood: problems.isEmpty, problems: problems),
        text: problems.isEmpty ? "The configuration is good." : problems.joined(separator: "\n")
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
