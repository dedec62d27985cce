import ArgumentParser
import CloudKitServer
import CloudKitWebServices
import Effects
import Foundation
import OpenCloudKit

/// `watershed logs`: the last requests of apps.
struct LogsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "logs",
    abstract: "List the last requests of apps to a running server, oldest first.",
    discussion: """
      watershed logs --container-id iCloud.org.example.app --errors --since 1h
      watershed logs --user ada --follow

      Each line has the time, endpoint, user, device, duration, bytes, outcome and the names of record types and \
      zones; no values of records and no tokens. The server keeps the last \(ServiceLimits().loggedRequests) requests \
      in its memory: they are lost when it stops, and each server of a database has its own. Transfers of \
      files, long polls and event streams are not among them.
      """
  )

  @OptionGroup var server: ServerOptions
  @OptionGroup var output: OutputOptions
  @Option(help: "Only requests to this container.") var containerId: String?
  @Option(help: "Only requests to this environment: development or production.")
  var environment: ContainerEnvironment?
  @Option(help: "Only requests of this user, by user name or record name.") var user: String?
  @Option(help: "Only requests to this endpoint, such as records/modify.") var endpoint: String?
  @Flag(help: "Only requests that were refused, or whose batch has refused records.")
  var errors = false
  @Option(help: "Requests since a time such as 2026-11-22T10:00:00Z or 2026-11-22, or 30m, 24h.")
  var since: String?
  @Option(help: "The most requests to print; with --follow, of those before.") var limit = 50
  @Flag(help: "Print further requests as they arrive, until interrupted.") var follow = false

  func validate() throws {
    guard (1...RequestQuery.largestPage).contains(limit) else {
      throw ValidationError("--limit takes 1 to \(RequestQuery.largestPage).")
    }
    if let since, AuditCommand.time(since, before: Date()) == nil {
      throw ValidationError(
        "--since takes 2026-11-22T10:00:00Z, 2026-11-22, 30m, 24h or 7d, and not \(since)."
      )
    }
    if follow, output.output == .json {
      throw ValidationError("--follow prints one object a line: --output ndjson.")
    }
    if let endpoint, Endpoint(rawValue: endpoint) == nil {
      throw ValidationError(
        "There is no endpoint \(endpoint); the endpoints are "
          + Endpoint.allCases.map(\.rawValue).sorted().joined(separator: ", ") + "."
      )
    }
  }

  func run() async throws {
    try await perform("the requests cannot be listed") {
      try await server.connect { connection in
        guard !(connection.transport is InProcessTransport) else {
          throw CommandFailure(
            "SERVER_STOPPED",
            what: "there are no requests to list",
            why:
              "the server of this folder does not run, and its log of requests was in its memory",
            next: "start it with watershed serve, or name another with --server",
            exit: ExitCodes.unreachable
          )
        }
        try await list(connection)
      }
    }
  }

  private func list(_ connection: AdminConnection) async throws {
    var query = RequestQuery(
      container: containerId,
      environment: environment,
      user: user,
      endpoint: endpoint,
      onlyErrors: errors,
      since: since.flatMap { AuditCommand.time($0, before: Date()) },
      limit: limit
    )
    var page: RequestPage = try await connection.call(.requests(.list), query)
    guard follow else {
      return try output.write(
        "requests",
        page.requests,
        columns: page.requests.map(Self.columns),
        titles: Self.titles
      )
    }
    // The number of the last request of each server behind one address.
    var known: [String: Int64] = [:]
    while true {
      try write(page.requests.filter { $0.number > known[page.log] ?? 0 })
      known[page.log] = max(known[page.log] ?? 0, page.last)
      let isOther = query.log != nil && query.log != page.log
      (query.log, query.after, query.limit) = (page.log, page.last, nil)
      // Servers behind one address answer in turn, each with a log of its own.
      if page.requests.isEmpty || isOther { try await Task.sleep(for: .seconds(1)) }
      page = try await connection.call(.requests(.list), query)
    }
  }

  /// Requests that follow others: lines without titles.
  private func write(_ requests: [LoggedRequest]) throws {
    guard output.format == .text else {
      return try output.write(lines: requests)
    }
    for request in requests {
      let cells = Self.columns(request).map { $0.isEmpty ? "-" : $0.spelledOut }
      try StandardOutput.print(cells.joined(separator: "  "))
    }
  }

  private static let titles = [
    "time", "container", "database", "endpoint", "user", "device", "ms", "in", "out", "outcome",
    "types", "zones", "platform",
  ]

  private static func columns(_ request: LoggedRequest) -> [String] {
    let time = Date(timeIntervalSince1970: Double(request.time) / 1000)
    let refused = request.refused.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }
    return [
      time.formatted(.iso8601), request.container,
      request.environment.rawValue + (request.database.map { "/\($0.rawValue)" } ?? ""),
      request.endpoint, request.userName ?? request.user ?? "", request.device ?? "",
      "\(request.milliseconds)", "\(request.bytesIn)", "\(request.bytesOut)",
      ([request.outcome] + refused).joined(separator: ", "),
      request.recordTypes.joined(separator: ","), request.zones.joined(separator: ","),
      request.platform ?? "",
    ]
  }
}
