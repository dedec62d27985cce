import ArgumentParser
import CloudKitWebServices
import Foundation

/// `watershed zones`: the zones of a user's database.
struct ZonesCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "zones",
    abstract: "Zones of a database: list, create, delete.",
    subcommands: [List.self, Create.self, Delete.self]
  )

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "List the zones.")

    @OptionGroup var target: DatabaseTarget

    func run() async throws {
      try await perform("the zones cannot be listed") {
        let reply: ZonesResponse = try await target.open {
          try await $0.call(.listZones, NoReply())
        }
        let zones = reply.zones.compactMap(\.item)
        try target.output.write(
          "zones",
          zones,
          columns: zones.map { [$0.zoneID.zoneName, $0.zoneID.ownerRecordName ?? ""] },
          titles: ["zone", "owner"]
        )
      }
    }
  }

  struct Create: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Create a zone.")

    @OptionGroup var target: DatabaseTarget
    @Argument(help: "The zone's name.") var name: String

    func run() async throws {
      try await perform("the zone was not created") {
        try await ZonesCommand.change(.create, name, target)
        try target.output.done("Created \(name).", ["zoneName": name])
      }
    }
  }

  struct Delete: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Delete a zone with every record in it."
    )

    @OptionGroup var target: DatabaseTarget
    @OptionGroup var consent: ConsentOptions
    @Argument(help: "The zone's name.") var name: String

    func run() async throws {
      try await perform("the zone was not deleted") {
        let count = try await target.open {
          try await Self.recordCount(of: name, $0)
        }
        let records =
          count > Self.counted ? "more than \(Self.counted) records" : Count.of(count, "record")
        let lost = "\(name) and its \(records)"
        guard try consent.isGiven(to: "delete \(lost)", target.output) else { return }
        try await ZonesCommand.change(.delete, name, target)
        try target.output.done(
          "Deleted \(lost).",
          ["zoneName": name, "deletedRecords": "\(count)"]
        )
      }
    }

    /// The most records that are counted: a page of 200 is a request.
    private static let counted = 20_000

    /// The records that the zone has, shares and unreadable ones included.
    private static func recordCount(
      of name: String,
      _ connection: DatabaseConnection
    ) async throws -> Int {
      var count = 0
      try await connection.readZone(ZoneID(zoneName: name), FeedOptions(desiredKeys: [])) {
        count += $0.count
        return count <= counted
      }
      return count
    }
  }

  fileprivate static func change(
    _ type: ZoneOperationType,
    _ name: String,
    _ target: DatabaseTarget
  ) async throws {
    let request = ModifyZonesRequest(operations: [
      ZoneOperation(
        operationType: type,
        zone: ZoneDictionary(zoneID: ZoneID(zoneName: name))
      )
    ])
    let reply: ZonesResponse = try await target.open {
      try await $0.call(.modifyZones, request)
    }
    for item in reply.zones { _ = try item.get() }
  }
}
