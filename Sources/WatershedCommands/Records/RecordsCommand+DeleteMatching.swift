import ArgumentParser
import CloudKitWebServices

extension RecordsCommand {
  struct DeleteMatching: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "delete-matching",
      abstract:
        "Delete the records that match a query; as in cktool it only counts them by default.",
      discussion: """
        A record that is refused does not keep the others from being deleted; it is listed, with exit code 2.
        """,
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
      /// In a trial, the records that would be deleted.
      var deletedCount = 0
      var failures: [RecordImport.Failure] = []
    }

    func run() async throws {
      try await perform("no record was deleted") {
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
        let result = try await place.open { try await work(query, $0) }
        try place.output.write(result, text: text(result))
        if !result.failures.isEmpty { throw ExitCode(ExitCodes.found) }
      }
    }

    private func text(_ result: Result) -> String {
      var text = Count.of(result.deletedCount, "record")
      text += dryRun ? " would be deleted." : " deleted."
      guard !result.failures.isEmpty else { return text }
      text += " \(result.failures.count) refused:"
      for failure in result.failures {
        text += "\n\(failure.recordName): \(failure.code): \(failure.reason)"
      }
      return text
    }

    private func work(
      _ query: RecordQuery,
      _ connection: DatabaseConnection
    ) async throws -> Result {
      var result = Result(dryRun: dryRun)
      do {
        var marker: String?
        repeat {
          let page = try await connection.page(
            QueryRecordsRequest(query: query, zoneID: place.zone, continuationMarker: marker)
          )
          marker = page.continuationMarker
          let names = page.records.compactMap(\.item?.recordName)
          if dryRun {
            result.deletedCount += names.count
          } else if !names.isEmpty {
            try await delete(names, connection, &result)
          }
        } while marker != nil
      } catch  where result.deletedCount > 0 && !dryRun {
        // The error of a later page must not hide what the earlier ones did.
        let done = Count.of(result.deletedCount, "record")
        throw CommandFailure(error, doing: "\(done) deleted, and not the others")
      }
      if !dryRun, result.failures.isEmpty {
        try await check(query, deleted: result.deletedCount, connection)
      }
      return result
    }

    private func delete(
      _ names: [String],
      _ connection: DatabaseConnection,
      _ result: inout Result
    ) async throws {
      let reply: RecordsResponse = try await connection.patiently(
        .modifyRecords,
        ModifyRecordsRequest(
          operations: names.map {
            RecordOperation(
              operationType: .forceDelete,
              record: RecordDictionary(recordName: $0)
            )
          },
          zoneID: place.zone,
          atomic: false
        )
      )
      for (name, item) in zip(names, reply.records) {
        switch item {
        case .success: result.deletedCount += 1
        case .failure(let error):
          result.failures.append(
            RecordImport.Failure(
              recordName: name,
              zoneName: place.zoneName,
              code: error.serverErrorCode.rawValue,
              reason: error.reason ?? ""
            )
          )
        }
      }
    }

    /// Throws if records still match after the deletion.
    private func check(
      _ query: RecordQuery,
      deleted: Int,
      _ connection: DatabaseConnection
    ) async throws {
      var marker: String?
      repeat {
        let rest = try await connection.page(
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
