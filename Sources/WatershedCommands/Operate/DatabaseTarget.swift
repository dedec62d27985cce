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
      try await database.use($0, makesContainer: makesContainer, body)
    }
  }
}

extension DatabaseConnection {
  /// Runs the body with each page of what a zone contains, unreadable records too, until it returns false.
  func readZone(
    _ zone: ZoneID,
    _ feed: FeedOptions,
    _ body: ([ItemResult<RecordDictionary>]) throws -> Bool
  ) async throws {
    var token: String?
    while true {
      let reply: ZoneChangesResponse = try await patiently(
        .zoneChanges,
        ZoneChangesRequest(zones: [ZoneChangesOptions(zoneID: zone, syncToken: token, feed: feed)])
      )
      guard let page = try reply.zones.first?.get() else { return }
      guard try body(page.records.filter { $0.item?.deleted != true }), page.moreComing == true,
        page.syncToken != token
      else { return }
      token = page.syncToken
    }
  }
}
