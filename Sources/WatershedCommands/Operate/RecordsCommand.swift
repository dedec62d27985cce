import ArgumentParser
import CloudKitWebServices
import Foundation

/// `watershed records`: with `cktool`'s flags where it has the verb.
struct RecordsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "records",
    abstract: "Records of a database: create, query, look up, update, delete.",
    discussion: """
      The verbs of cktool with their flags work too: create-record, query-records, delete-record, \
      delete-records.
      """,
    subcommands: [
      Create.self, Query.self, Get.self, Update.self, Delete.self, DeleteMatching.self,
    ],
    aliases: ["record"]
  )

  /// Where and as whom, in which zone.
  struct Place: ParsableArguments {
    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions
    @OptionGroup var database: DatabaseOptions
    @Option(help: "The zone.") var zoneName = "_defaultZone"

    var zone: ZoneID { ZoneID(zoneName: zoneName) }

    func open<Result>(_ body: (DatabaseConnection) async throws -> Result) async throws -> Result {
      try await server.connect { try await body(try await database.open($0)) }
    }

    /// Saves one record.
    func save(_ operation: RecordOperation) async throws -> RecordDictionary {
      try await open { try await save(operation, $0) }
    }

    func save(
      _ operation: RecordOperation,
      _ connection: DatabaseConnection
    ) async throws -> RecordDictionary {
      let reply: RecordsResponse = try await connection.call(
        .modifyRecords,
        ModifyRecordsRequest(operations: [operation], zoneID: zone)
      )
      guard let item = reply.records.first else {
        throw ErrorDictionary(.internalError, "no record came back")
      }
      return try item.get()
    }
  }

  /// The fields of a record, from one of three places.
  struct FieldOptions: ParsableArguments {
    @Option(help: "The fields as JSON: {\"title\":{\"type\":\"stringType\",\"value\":\"x\"}}.")
    var fieldsJson: String?
    @Option(help: "A file with the fields as JSON.") var fieldsFile: String?
    @Flag(help: "Read the fields from the standard input.") var fieldsStdin = false
    @Option(parsing: .upToNextOption, help: "Files that assets name: KEY=PATH …")
    var assetFiles: [String] = []

    func validate() throws {
      let given = [fieldsJson != nil, fieldsFile != nil, fieldsStdin].filter(\.self).count
      guard given == 1 else {
        throw ValidationError("Give one of --fields-json, --fields-file and --fields-stdin.")
      }
      for entry in assetFiles where !entry.contains("=") {
        throw ValidationError("An asset file is KEY=PATH, and \(entry) is not.")
      }
    }

    func fields(
      type: String,
      _ connection: DatabaseConnection
    ) async throws -> [String: FieldValue] {
      var text = Data()
      if let fieldsJson { text = Data(fieldsJson.utf8) }
      if let fieldsFile { text = try InputFile.data(fieldsFile) }
      if fieldsStdin { text = try InputFile.data("-") }
      var paths: [String: String] = [:]
      for entry in assetFiles {
        let halves = entry.split(separator: "=", maxSplits: 1).map(String.init)
        if halves.count == 2 { paths[halves[0]] = halves[1] }
      }
      var fields: [String: FieldValue] = [:]
      for (name, field) in try RecordFilter.fields(text).sorted(by: { $0.key < $1.key }) {
        let content = try await RecordFilter.content(of: field) { key in
          guard let path = paths[key] else {
            throw ValidationError("--asset-files names no file for \(key).")
          }
          return try await connection.upload(try InputFile.data(path), type: type, field: name)
        }
        fields[name] = FieldValue(content)
      }
      return fields
    }
  }

  struct Create: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Create a record and print it.",
      aliases: ["create-record"]
    )

    @OptionGroup var place: Place
    @OptionGroup var given: FieldOptions
    @Option(help: "The record's type.") var recordType: String
    @Option(help: "The record's name; without it the server makes one.") var recordName: String?

    func run() async throws {
      try await perform("no record was created") {
        let record = try await place.open { connection in
          try await place.save(
            RecordOperation(
              operationType: .create,
              record: RecordDictionary(
                recordName: recordName,
                recordType: recordType,
                fields: try await given.fields(type: recordType, connection)
              )
            ),
            connection
          )
        }
        try place.output.write(record, text: record.recordName ?? "")
      }
    }
  }

  struct Update: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Change fields of a record; without a change tag whatever is there.",
      aliases: ["update-record"]
    )

    @OptionGroup var place: Place
    @OptionGroup var given: FieldOptions
    @Option(help: "The record's name.") var recordName: String
    @Option(help: "The record's type.") var recordType: String?
    @Option(help: "Change it only if it still has this tag.") var recordChangeTag: String?

    func run() async throws {
      try await perform("the record was not changed") {
        let record = try await place.open { connection in
          var type = recordType
          if type == nil {
            let reply: RecordsResponse = try await connection.call(
              .lookupRecords,
              LookupRecordsRequest(
                records: [LookupRecord(recordName: recordName)],
                zoneID: place.zone
              )
            )
            type = try reply.records.first?.get().recordType
          }
          return try await place.save(
            RecordOperation(
              operationType: recordChangeTag == nil ? .forceUpdate : .update,
              record: RecordDictionary(
                recordName: recordName,
                recordType: type,
                recordChangeTag: recordChangeTag,
                fields: try await given.fields(type: type ?? "", connection)
              )
            ),
            connection
          )
        }
        try place.output.write(record, text: record.recordName ?? "")
      }
    }
  }

  struct Get: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Print one record.",
      aliases: ["get-record"]
    )

    @OptionGroup var place: Place
    @Option(help: "The record's name.") var recordName: String

    func run() async throws {
      try await perform("the record cannot be shown") {
        let reply: RecordsResponse = try await place.open {
          try await $0.call(
            .lookupRecords,
            LookupRecordsRequest(
              records: [LookupRecord(recordName: recordName)],
              zoneID: place.zone
            )
          )
        }
        guard let record = try reply.records.first?.get() else { return }
        let text = String(decoding: try WireCoding.encode(record), as: UTF8.self)
        try place.output.write(record, text: text)
      }
    }
  }

  struct Query: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Print the records that fit, as {records, continuationToken}.",
      aliases: ["query-records"]
    )

    @OptionGroup var place: Place
    @Option(help: "The record type.") var recordType: String
    @Option(parsing: .upToNextOption, help: "\"FIELD OPERATOR VALUE\" …, all of them must hold.")
    var filters: [String] = []
    @Option(parsing: .upToNextOption, help: "\"FIELD ASC\" or \"FIELD DESC\" …")
    var sortBy: [String] = []
    @Option(parsing: .upToNextOption, help: "The fields to print; without it all.")
    var requestedFields: [String] = []
    @Option(help: "So many records at most.") var limit = 200
    @Option(help: "Goes on where another reply ended.") var continuationToken: String?

    private struct Reply: Encodable {
      var records: [RecordDictionary]
      var continuationToken: String?
    }

    func run() async throws {
      try await perform("the query was not answered") {
        let query = RecordQuery(
          recordType: recordType,
          filterBy: try filters.map(RecordFilter.filter),
          sortBy: try sortBy.map(RecordFilter.sort)
        )
        let found: QueryRecordsResponse = try await place.open {
          try await $0.call(
            .queryRecords,
            QueryRecordsRequest(
              query: query,
              zoneID: place.zone,
              resultsLimit: limit,
              continuationMarker: continuationToken,
              desiredKeys: requestedFields.isEmpty ? nil : requestedFields
            )
          )
        }
        let records = found.records.compactMap(\.item)
        let reply = Reply(records: records, continuationToken: found.continuationMarker)
        if place.output.format == .ndjson {
          try place.output.write("records", records, columns: [], titles: [])
        } else {
          try place.output.write(
            reply,
            text: records.map { $0.recordName ?? "" }.joined(separator: "\n")
          )
        }
      }
    }
  }

  struct Delete: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Delete one record.",
      aliases: ["delete-record"]
    )

    @OptionGroup var place: Place
    @OptionGroup var consent: ConsentOptions
    @Option(help: "The record's name.") var recordName: String

    func run() async throws {
      try await perform("the record was not deleted") {
        guard try consent.isGiven(to: "delete the record \(recordName)", place.output) else {
          return
        }
        _ = try await place.save(
          RecordOperation(
            operationType: .forceDelete,
            record: RecordDictionary(recordName: recordName)
          )
        )
        place.output.remark("Deleted \(recordName).")
      }
    }
  }

  struct DeleteMatching: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "delete-matching",
      abstract: "Delete the records that fit a query; as in cktool it only counts at first.",
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
        guard dryRun || yes else {
          throw CommandFailure(
            "NOT_CONFIRMED",
            what: "nothing was done",
            why: "this would delete every \(recordType) that fits",
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
          text: dryRun ? "\(count) records would be deleted." : "\(count) records deleted."
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
      return count
    }
  }
}
