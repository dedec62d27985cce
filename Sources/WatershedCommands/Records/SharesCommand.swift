import ArgumentParser
import CloudKitWebServices

/// `watershed shares`: the shares in a database.
struct SharesCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "shares",
    abstract: "The shares in a user's private or shared database: list.",
    subcommands: [List.self]
  )

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "List the shares of all zones, with their rights and the number of participants."
    )

    @OptionGroup var target: DatabaseTarget

    func run() async throws {
      try await perform("the shares cannot be listed") {
        let (shares, unreadable) = try await target.open {
          try await Self.shares(in: $0)
        }
        if unreadable > 0 {
          target.output.remark("\(Count.of(unreadable, "record")) cannot be read: not listed.")
        }
        try target.output.write(
          "shares",
          shares,
          columns: shares.map { share in
            [
              share.recordName ?? "", share.zoneID?.zoneName ?? "",
              share.zoneID?.ownerRecordName ?? "",
              share.sharing?.publicPermission?.rawValue ?? "",
              "\(share.sharing?.participants?.count ?? 0)", share.shortGUID ?? "",
            ]
          },
          titles: ["share", "zone", "owner", "public", "participants", "link"]
        )
      }
    }

    private static func shares(
      in connection: DatabaseConnection
    ) async throws -> (shares: [RecordDictionary], unreadable: Int) {
      let reply: ZonesResponse = try await connection.call(.listZones, NoReply())
      var found: [RecordDictionary] = []
      var unreadable = 0
      // The default zone has neither changes nor shares.
      for zone in reply.zones.compactMap(\.item?.zoneID) where zone.zoneName != "_defaultZone" {
        let feed = FeedOptions(desiredRecordTypes: [ShareDictionary.recordType])
        try await connection.readZone(zone, feed) { records in
          unreadable += records.count { $0.item == nil }
          for var record in records.compactMap(\.item) where record.sharing != nil {
            record.zoneID = record.zoneID ?? zone
            found.append(record)
          }
          return true
        }
      }
      return (found, unreadable)
    }
  }
}
