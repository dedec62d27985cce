import ArgumentParser
import CloudKitServer
import Foundation

/// `watershed assets`: the files of a server.
struct AssetsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "assets",
    abstract: "The files of a server: check.",
    subcommands: [Check.self]
  )

  struct Check: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Compare the stored files with the records; exit code 2 if a file is missing.",
      discussion: """
        A missing file is used by a record and not in the asset store: put it back from a backup, at the \
        printed path. An unused file is used by no record; the server removes it after the grace \
        period. Nothing is changed.
        """
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
      try await perform("the files cannot be checked") {
        let found: AssetCheck = try await server.connect {
          try await $0.call(.assets(.check), NoReply())
        }
        let lines =
          ["\(Count.of(found.files, "file")), \(found.bytes) bytes"]
          + found.missing.map { "missing: \($0)" } + found.unused.map { "unused: \($0)" }
        try output.write(found, text: lines.joined(separator: "\n"))
        if !found.missing.isEmpty { throw ExitCode(ExitCodes.found) }
      }
    }
  }
}
