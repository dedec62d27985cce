import ArgumentParser
import CloudKitWebServices
import Foundation

extension RecordsCommand {
  /// The server, the user and the zone of a command.
  struct Place: ParsableArguments {
    @OptionGroup var target: DatabaseTarget
    @Option(help: "The zone.") var zoneName = "_defaultZone"

    var zone: ZoneID { ZoneID(zoneName: zoneName) }

    var server: ServerOptions { target.server }
    var output: OutputOptions { target.output }
    var database: DatabaseOptions { target.database }

    func open<Result>(
      makesContainer: Bool = false,
      _ body: (DatabaseConnection) async throws -> Result
    ) async throws -> Result {
      try await target.open(makesContainer: makesContainer, body)
    }

    /// Looks one record up.
    func record(_ name: String, _ connection: DatabaseConnection) async throws -> RecordDictionary?
    {
      let reply: RecordsResponse = try await connection.call(
        .lookupRecords,
        LookupRecordsRequest(records: [LookupRecord(recordName: name)], zoneID: zone)
      )
      return try reply.records.first?.get()
    }

    /// The record after one operation, which the body creates from the current one.
    func save(
      makesContainer: Bool = false,
      _ operation: (DatabaseConnection) async throws -> RecordOperation
    ) async throws -> RecordDictionary {
      let reply: RecordsResponse = try await open(makesContainer: makesContainer) {
        connection in
        try await connection.call(
          .modifyRecords,
          ModifyRecordsRequest(operations: [try await operation(connection)], zoneID: zone)
        )
      }
      guard let item = reply.records.first else {
        throw ErrorDictionary(.internalError, "the server returned no record")
      }
      return try item.get()
    }
  }

  /// The fields of a record, from one of three sources.
  struct FieldOptions: ParsableArguments {
    @Option(
      help: ArgumentHelp(
        "The fields as JSON: {\"title\":{\"type\":\"stringType\",\"value\":\"x\"}}.",
        discussion: """
          A whole record as `records get` prints it is read too, in all three places. A field that the \
          schema encrypts takes "isEncrypted": true beside its type.
          """
      )
    )
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

    /// The record, from the given source.
    func record() throws -> RecordInput {
      var text = Data()
      if let fieldsJson { text = Data(fieldsJson.utf8) }
      if let fieldsFile { text = try InputFile.data(fieldsFile) }
      if fieldsStdin { text = try InputFile.data("-") }
      return try RecordInput(text)
    }

    /// The values of its fields; files are uploaded first.
    func values(
      of record: RecordInput,
      type: String,
      _ connection: DatabaseConnection
    ) async throws -> [String: FieldValue] {
      var paths: [String: String] = [:]
      for entry in assetFiles {
        let halves = entry.split(separator: "=", maxSplits: 1).map(String.init)
        if halves.count == 2 { paths[halves[0]] = halves[1] }
      }
      var values: [String: FieldValue] = [:]
      for (name, field) in record.fields.sorted(by: { $0.key < $1.key }) {
        values[name] = try await field.fieldValue { source in
          switch source {
          case .uploaded(let value): return value
          case .download(let url):
            let data = try await connection.download(url)
            return try await connection.upload(data, type: type, field: name)
          case .key(let key):
            guard let path = paths[key] else {
              throw ValidationError("--asset-files names no file for \(key).")
            }
            return try await connection.upload(try InputFile.data(path), type: type, field: name)
          }
        }
      }
      return values
    }
  }
}
