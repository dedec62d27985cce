import ArgumentParser
import CloudKitWebServices

extension RecordsCommand {
  struct DeleteMatching: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "delete-matching",
      abstract:
        "Delete the records that match a query; as in cktool it only counts them by default.",
      aliases: ["delete-all", "delete-records"]
    )

    @OptionGroup var place: Place
    @Option(help: "The record type.") var recordType: String
    @Option(parsing: .upToNextOption, help: "\"FIELD OPERATOR VALUE\" …, all of them must hold.")
    var filters: [String] = []
    @Option(help: "true only counts; false deletes.") var dryRun = true
    @Flag(name: .shortAndLong, help: "Do not ask.") var yes = false

    private struct Result: Encodable {
      var dryRun: Bool
      var deletedCount: Int
    }

    func run() async throws {
      try await perform("the records were not deleted") {
        guard dryRun || yes || ConsentOptions.isCktool else {
          throw CommandFailure(
            "NOT_CONFIRMED",
            what: "nothing was done",
            why: "this would delete every \(recordType) that matches",
            next: "add --yes",
            exit: ExitCodes.usage
          )
        }
        let query = RecordQuery(
          recordType: recordType,
          filterBy: try filters.map(RecordFilter.filter),
          sortBy: []
        )
        let count = try await place.open { try await work(query, $0) }
        try place.output.write(
          Result(dryRun: dryRun, deletedCount: count),
          text: Count.of(count, "record") + (dryRun ? " would be deleted." : " deleted.")
        )
      }
    }

    private func work(_ query: RecordQuery, _ connection: DatabaseConnection) async throws -> Int {
      var count = 0
      var marker: String?
      repeat {
        let found: QueryRecordsResponse = try await connection.call(
          .queryRecords,
          QueryRecordsRequest(query: query, zoneID: place.zone, continuationMarker: marker)
        )
        let names = found.records.compactMap(\.item?.recordName)
        count += names.count
        marker = found.continuationMarker
        if !dryRun, !names.isEmpty {
          let reply: RecordsResponse = try await connection.call(
            .modifyRecords,
            ModifyRecordsRequest(
              operations: names.map {
                RecordOperation(
                  operationType: .forceDelete,
                  record: RecordDictionary(recordName: $0)
                )
              },
              zoneID: place.zone
            )
          )
          for item in reply.records { _ = try item.get() }
        }
      } while marker != nil
      if !dryRun { try await check(query, deleted: count, connection) }
      return count
    }

    /// Throws if records still match after the deletion.
    private func check(
      _ query: RecordQuery,
      deleted: Int,
      _ connection: DatabaseConnection
    ) async throws {
      var marker: String?
      repeat {
        let rest: QueryRecordsResponse = try await connection.call(
          .queryRecords,
          QueryRecordsRequest(query: query, zoneID: place.zone, continuationMarker: marker)
        )
        guard rest.records.isEmpty else {
          throw CommandFailure(
            "INCOMPLETE",
            what: "\(Count.of(deleted, "record")) deleted, and others still match",
            why: "they were created meanwhile, or cannot be read, so that no filter is tested",
            next: "run the command again; watershed records query lists them"
          )
        }
        marker = rest.continuationMarker
      } while marker != nil
    }
  }
}
