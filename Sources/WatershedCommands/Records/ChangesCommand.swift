import ArgumentParser
import CloudKitWebServices
import Foundation

/// `watershed changes`: what changed in a zone, as a device would fetch it.
struct ChangesCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "changes",
    abstract: "List the saved and deleted records of a zone since a token, as devices fetch them.",
    discussion: """
      watershed changes --container-id iCloud.org.example.app --user ada --zone-name notes
      watershed changes --container-id iCloud.org.example.app --user ada --zone-name notes --since TOKEN

      Without --since it lists every record of the zone. The reply's syncToken is the next --since.
      """
  )

  @OptionGroup var place: RecordsCommand.Place
  @Option(help: "The syncToken of an earlier run.") var since: String?
  @Option(help: "The most records to print.") var limit = 200

  private struct Changes: Encodable {
    var records: [RecordDictionary]
    var syncToken: String?
    var moreComing: Bool
  }

  func validate() throws {
    guard limit > 0 else { throw ValidationError("--limit has to be above zero.") }
  }

  func run() async throws {
    try await perform("the changes cannot be listed") {
      let changes = try await place.open { try await read($0) }
      if place.output.format == .ndjson {
        try place.output.write("records", changes.records, columns: [], titles: [])
      } else {
        try place.output.write(changes, text: Self.text(changes))
      }
    }
  }

  private func read(_ connection: DatabaseConnection) async throws -> Changes {
    var found = Changes(records: [], syncToken: since, moreComing: true)
    while found.moreComing, found.records.count < limit {
      let options = ZoneChangesOptions(
        zoneID: place.zone,
        syncToken: found.syncToken,
        feed: FeedOptions(resultsLimit: min(limit - found.records.count, 200))
      )
      let reply: ZoneChangesResponse = try await connection.call(
        .zoneChanges,
        ZoneChangesRequest(zones: [options])
      )
      guard let page = try reply.zones.first?.get() else { break }
      found.records += try page.records.map { try $0.get() }
      found.moreComing = page.moreComing == true && page.syncToken != found.syncToken
      found.syncToken = page.syncToken
    }
    return found
  }

  private static func text(_ changes: Changes) -> String {
    let lines = changes.records.map { record in
      let name = record.recordName ?? ""
      guard record.deleted != true else { return "deleted  \(name)" }
      return "saved  \(name)  \(record.recordType ?? "")  \(record.recordChangeTag ?? "")"
    }
    return (lines + ["syncToken  \(changes.syncToken ?? "")"]).joined(separator: "\n")
  }
}
