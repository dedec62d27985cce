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
  @Option(help: "So many lines.") var limit = 50

  func validate() throws {
    guard limit > 0 else { throw ValidationError("--limit is above zero.") }
  }

  private struct Reply: Decodable {
    var lines: [AuditLine]
    var last: String?
  }

  /// Pages until there are enough.
  private func lines(_ server: AdminConnection) async throws -> [AuditLine] {
    var lines: [AuditLine] = []
    var last: String?
    while lines.count < limit {
      let page = AdminPage(after: last, limit: min(limit - lines.count, 1000))
      let reply: Reply = try await server.call("audit/list", page)
      lines += reply.lines
      guard let next = reply.last, next != last, !reply.lines.isEmpty else { break }
      last = next
    }
    return lines
  }

  func run() async throws {
    try await perform("the log cannot be read") {
      let lines = try await server.connect { try await self.lines($0) }
      try output.write(
        "lines",
        lines,
        columns: lines.map { line in
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
