import ArgumentParser
import CloudKitWebServices
import Foundation

extension RecordsCommand {
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

    /// Looks one record up.
    func record(_ name: String, _ connection: DatabaseConnection) async throws -> RecordDictionary?
    {
      let reply: RecordsResponse = try await connection.call(
        .lookupRecords,
        LookupRecordsRequest(records: [LookupRecord(recordName: name)], zoneID: zone)
      )
      return try reply.records.first?.get()
    }

    /// What the server holds after one operation; the body makes it from what it asks first.
    func save(
      _ operation: (DatabaseConnection) async throws -> RecordOperation
    ) async throws -> RecordDictionary {
      let reply: RecordsResponse = try await open { connection in
        try await connection.call(
          .modifyRecords,
          ModifyRecordsRequest(operations: [try await operation(connection)], zoneID: zone)
        )
      }
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
}
