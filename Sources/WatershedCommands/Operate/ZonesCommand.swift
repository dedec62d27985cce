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

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions
    @OptionGroup var database: DatabaseOptions

    func run() async throws {
      try await perform("the zones cannot be listed") {
        let reply: ZonesResponse = try await server.connect {
          try await database.open($0).call(.listZones, NoReply())
        }
        let zones = reply.zones.compactMap(\.item)
        try output.write(
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

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions
    @OptionGroup var database: DatabaseOptions
    @Argument(help: "The zone's name.") var name: String

    func run() async throws {
      try await perform("the zone was not created") {
        try await ZonesCommand.change(.create, name, server, database)
        try output.done("Created \(name).", ["zoneName": name])
      }
    }
  }

  struct Delete: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Delete a zone with every record in it."
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions
    @OptionGroup var database: DatabaseOptions
    @OptionGroup var consent: ConsentOptions
    @Argument(help: "The zone's name.") var name: String

    func run() async throws {
      try await perform("the zone was not deleted") {
        guard try consent.isGiven(to: "delete \(name) and all of its records", output) else {
          return
        }
        try await ZonesCommand.change(.delete, name, server, database)
        try output.done("Deleted \(name).", ["zoneName": name])
      }
    }
  }

  fileprivate static func change(
    _ type: ZoneOperationType,
    _ name: String,
    _ server: ServerOptions,
    _ database: DatabaseOptions
  ) async throws {
    let request = ModifyZonesRequest(operations: [
      ZoneOperation(
        operationType: type,
        zone: ZoneDictionary(zoneID: ZoneID(zoneName: name))
      )
    ])
    let reply: ZonesResponse = try await server.connect {
      try await database.open($0).call(.modifyZones, request)
    }
    for item in reply.zones { _ = try item.get() }
  }
}
