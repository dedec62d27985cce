import ArgumentParser
import CloudKitWebServices
import Foundation

extension RecordsCommand {
  struct Query: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Print the records that match a query, as {records, continuationToken}.",
      discussion: """
        Without --record-type it queries the types of the schema one after the other, which takes an \
        administrator. Up to --limit records are printed; where there are more, the result has a continuation \
        token, which the text form prints on the standard error.
        """,
      aliases: ["query-records"]
    )

    @OptionGroup var place: Place
    @Option(help: "The record type; without it all.") var recordType: String?
    @Option(
      parsing: .upToNextOption,
      help: ArgumentHelp(
        "\"FIELD OPERATOR VALUE\" …, all of them must hold.",
        discussion: RecordFilter.operators
          + " IN, NOT_IN and the operators with ANY or ALL take a list: 4,5 or [\"a\",\"z\"]. NEAR takes"
          + " LATITUDE,LONGITUDE,METRES. A value has the type of its field, or one before it:"
          + " stringType:5."
      )
    )
    var filters: [String] = []
    @Option(parsing: .upToNextOption, help: "\"FIELD ASC\" or \"FIELD DESC\" …")
    var sortBy: [String] = []
    @Option(parsing: .upToNextOption, help: "The fields to print; without it all.")
    var requestedFields: [String] = []
    @Option(help: "The most records to print.") var limit = 200
    @Option(help: "The continuation token of the previous page.") var continuationToken: String?

    /// CloudKit's limit for one request.
    private static let recordsInPage = 200

    private struct Reply: Encodable {
      var records: [RecordDictionary]
      var continuationToken: String?
    }

    func validate() throws {
      guard limit > 0 else { throw ValidationError("--limit takes 1 or more.") }
    }

    func run() async throws {
      try await perform("the query was not answered") {
        let filters = try filters.map(RecordFilter.filter)
        let sorts = try sortBy.map(RecordFilter.sort)
        let reply = try await place.open { connection in
          guard let recordType else { return try await everyType(filters, sorts, connection) }
          let query = RecordQuery(recordType: recordType, filterBy: filters, sortBy: sorts)
          return try await records(query, limit, continuationToken, connection)
        }
        if place.output.format == .ndjson {
          try place.output.write("records", reply.records, columns: [], titles: [])
        } else {
          try place.output.write(
            reply,
            text: reply.records.map { $0.recordName ?? "" }.joined(separator: "\n")
          )
        }
        // The other forms have it in the result.
        if let token = reply.continuationToken, [.text, .ndjson].contains(place.output.format) {
          place.output.remark("There are more records: --continuation-token '\(token)'")
        }
      }
    }

    /// The pages of a query, until there are `limit` records or no more.
    private func records(
      _ query: RecordQuery,
      _ limit: Int,
      _ marker: String?,
      _ connection: DatabaseConnection
    ) async throws -> Reply {
      var reply = Reply(records: [], continuationToken: marker)
      repeat {
        let found = try await connection.page(
          QueryRecordsRequest(
            query: query,
            zoneID: place.zone,
            resultsLimit: min(limit - reply.records.count, Self.recordsInPage),
            continuationMarker: reply.continuationToken,
            desiredKeys: requestedFields.isEmpty ? nil : requestedFields
          )
        )
        reply.records += found.records.compactMap(\.item)
        reply.continuationToken = found.continuationMarker
      } while reply.continuationToken != nil && reply.records.count < limit
      return reply
    }

    /// A continuation token is the type to continue with, a colon, and the marker within it, if any.
    private func everyType(
      _ filters: [QueryFilter],
      _ sorts: [QuerySort],
      _ connection: DatabaseConnection
    ) async throws -> Reply {
      guard let types = try await connection.recordTypes() else {
        throw ValidationError("Name the record type with --record-type.")
      }
      let halves = continuationToken?.split(
        separator: ":",
        maxSplits: 1,
        omittingEmptySubsequences: false
      ).map(String.init)
      var marker = halves?.last.flatMap { $0.isEmpty ? nil : $0 }
      var reply = Reply(records: [], continuationToken: nil)
      for type in types where halves.map({ type >= $0[0] }) ?? true {
        guard reply.records.count < limit else {
          reply.continuationToken = "\(type):"
          return reply
        }
        let query = RecordQuery(recordType: type, filterBy: filters, sortBy: sorts)
        let next = try await records(query, limit - reply.records.count, marker, connection)
        marker = nil
        reply.records += next.records
        if let token = next.continuationToken {
          reply.continuationToken = "\(type):\(token)"
          return reply
        }
      }
      return reply
    }
  }
}
