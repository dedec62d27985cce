import ArgumentParser
import CloudKitServer
import Foundation

/// `watershed audit`: who did what.
struct AuditCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "audit",
    abstract:
      "List what administrators and people did with accounts, tokens and keys, newest first."
  )

  @OptionGroup var server: ServerOptions
  @OptionGroup var output: OutputOptions
  @Option(help: "So many lines, at most 1000.") var limit = 50

  private struct Reply: Decodable { var lines: [AuditLine] }

  func run() async throws {
    try await perform("the log cannot be read") {
      let reply: Reply = try await server.connect {
        try await $0.call("audit/list", ["limit": limit])
      }
      try output.write(
        "lines",
        reply.lines,
        columns: reply.lines.map { line in
          let date = Date(timeIntervalSince1970: Double(line.time) / 1000)
          return [
            date.formatted(.iso8601), line.action, line.by, line.about, line.detail ?? "",
          ]
        },
        titles: ["time", "action", "by", "about", "detail"]
      )
    }
  }
}
