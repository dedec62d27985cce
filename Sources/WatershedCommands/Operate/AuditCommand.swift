import ArgumentParser
import CloudKitServer
import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// `watershed audit`: prints the audit log.
struct AuditCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "audit",
    abstract:
      "List actions of administrators and users on accounts, tokens and keys, newest first.",
    discussion: """
      watershed audit --kind sign-in.failure --since 24h
      watershed audit --account ada --address 203.0.113.5

      Sign-ins that failed are kept for 30 days, everything else for 400.
      """
  )

  @OptionGroup var server: ServerOptions
  @OptionGroup var output: OutputOptions
  @Option(help: "The most lines to print.") var limit = 50
  @Option(help: "Lines by or about this account.") var account: String?
  @Option(help: "An action such as sign-in.failure, or a kind such as sign-in.") var kind: String?
  @Option(help: "Lines since a time such as 2026-11-22T10:00:00Z or 2026-11-22, or 30m, 24h, 7d.")
  var since: String?
  @Option(help: "Lines from this address; of IPv6, from its network of 64 bits.")
  var address: String?

  func validate() throws {
    guard limit > 0 else { throw ValidationError("--limit has to be above zero.") }
    if let kind, !Self.kinds.contains(String(kind.prefix { $0 != "." })) {
      throw ValidationError(
        "There is no kind \(kind); the kinds are \(Self.kinds.joined(separator: ", "))."
      )
    }
    if let address, !Self.isAddress(address) {
      throw ValidationError("\(address) is not an IPv4 or IPv6 address.")
    }
    if let since, Self.time(since, before: Date()) == nil {
      throw ValidationError(
        "--since takes 2026-11-22T10:00:00Z, 2026-11-22, 30m, 24h or 7d, and not \(since)."
      )
    }
  }

  /// The part of an action before its point.
  static let kinds = [
    "account", "admin", "backup", "container", "device", "encryption", "invitation", "key",
    "record", "request", "schema", "second-factor", "server", "sign-in", "sign-out", "token",
    "usage", "user",
  ]

  private static func isAddress(_ text: String) -> Bool {
    var four = in_addr()
    var six = in6_addr()
    return inet_pton(AF_INET, text, &four) == 1 || inet_pton(AF_INET6, text, &six) == 1
  }

  /// The time in an option, in milliseconds since 1970.
  static func time(_ text: String, before now: Date) -> Int64? {
    let units: [Character: Double] = ["m": 60, "h": 3600, "d": 24 * 3600]
    if let unit = text.last.flatMap({ units[$0] }), let count = Double(text.dropLast()),
      count >= 0, count < 1_000_000
    {
      return Int64((now.timeIntervalSince1970 - count * unit) * 1000)
    }
    let styles = [Date.ISO8601FormatStyle(), Date.ISO8601FormatStyle().year().month().day()]
    let date = styles.lazy.compactMap { try? Date(text, strategy: $0) }.first
    return date.map { Int64($0.timeIntervalSince1970 * 1000) }
  }

  private struct Reply: Decodable {
    var lines: [AuditLine]
    var last: String?
  }

  /// Reads pages until there are enough lines; a page may be empty although more follow.
  private func lines(_ server: AdminConnection) async throws -> [AuditLine] {
    var lines: [AuditLine] = []
    var query = AuditQuery(
      account: account,
      kind: kind,
      since: since.flatMap { Self.time($0, before: Date()) },
      address: address
    )
    while lines.count < limit {
      query.limit = min(limit - lines.count, 1000)
      let reply: Reply = try await server.call(.audit(.list), query)
      lines += reply.lines
      guard let next = reply.last, next != query.after else { break }
      query.after = next
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
            date.formatted(.iso8601), line.action, line.by, line.about, line.address ?? "",
            line.device ?? "", line.detail ?? "",
          ]
        },
        titles: ["time", "action", "by", "about", "address", "device", "detail"]
      )
    }
  }
}
