import ArgumentParser
import CloudKitWebServices

/// The database that a command works on, its server, and the format of the results.
struct DatabaseTarget: ParsableArguments {
  @OptionGroup var server: ServerOptions
  @OptionGroup var output: OutputOptions
  @OptionGroup var database: DatabaseOptions

  /// Connects to the database, runs the body, and closes what was opened.
  func open<Result>(
    makesContainer: Bool = false,
    _ body: (DatabaseConnection) async throws -> Result
  ) async throws -> Result {
    try await server.connect {
      try await body(try await database.open($0, makesContainer: makesContainer))
    }
  }
}

extension DatabaseConnection {
  /// Runs the body with each page of what a zone contains.
  func readZone(
    _ zone: ZoneID,
    _ feed: FeedOptions,
    _ body: ([RecordDictionary]) throws -> Void
  ) async throws {
    var token: String?
    while true {
      let reply: ZoneChangesResponse = try await patiently(
        .zoneChanges,
        ZoneChangesRequest(zones: [ZoneChangesOptions(zoneID: zone, syncToken: token, feed: feed)])
      )
      guard let page = try reply.zones.first?.get() else { return }
      try body(try page.records.map { try $0.get() }.filter { $0.deleted != true })
      guard page.moreComing == true, page.syncToken != token else { return }
      token = page.syncToken
    }
  }
}
