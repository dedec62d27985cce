import ArgumentParser
import Foundation

extension RecordsCommand {
  struct Export: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Write the records of a database, with their files, to a folder.",
      discussion: """
        records.ndjson has a record in each line, as `records get` prints it, zones.ndjson the zones, and \
        assets the files. Encrypted fields are decrypted. Shares stay: `import` makes none.

        With --server, --api-token and --user-token it reads from any service that speaks CloudKit's web \
        services. The default zone and the public database are read by a query for each record type, \
        which needs an index: QUERYABLE on recordName.
        """
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions
    @OptionGroup var database: DatabaseOptions
    @OptionGroup var selection: SelectionOptions
    @Argument(help: "A folder that does not exist yet.") var folder: String

    func run() async throws {
      try await perform("nothing was exported") {
        let result = try await server.connect { connection in
          // The files are in the folder: their URLs are not needed any more.
          try await database.use(connection, printsFiles: false) {
            try await selection.export($0, to: folder)
          }
        }
        try output.write(result, text: Self.text(result))
        if result.shares > 0 {
          output.remark("\(Count.of(result.shares, "share")) not exported: people share again.")
        }
      }
    }

    static func text(_ result: RecordExport.Result) -> String {
      "\(result.path): \(Count.of(result.records, "record")) of \(Count.of(result.zones, "zone")), "
        + "\(Count.of(result.assets, "file")) of \(result.bytes) bytes"
    }
  }

  /// The zones and types of an export.
  struct SelectionOptions: ParsableArguments {
    @Option(
      name: .customLong("zone-name"),
      help: "A zone to read; repeat for more. Without it all."
    )
    var zones: [String] = []
    @Option(
      name: .customLong("record-type"),
      help: """
        A record type to read from the default zone or the public database; repeat for more. Without it \
        those of the schema, which an administrator may read.
        """
    )
    var types: [String] = []

    /// Exports to a folder, which has its name once it is complete.
    func export(
      _ connection: DatabaseConnection,
      to path: String
    ) async throws -> RecordExport.Result {
      let folder = URL(fileURLWithPath: path).standardizedFileURL
      guard !FileManager.default.fileExists(atPath: folder.path) else {
        throw CommandFailure(
          "UNWRITABLE_FILE",
          what: "nothing was exported",
          why: "there is something at \(folder.path) already",
          next: "name a folder that does not exist yet"
        )
      }
      let partial = folder.appendingPathExtension("partial")
      try? FileManager.default.removeItem(at: partial)
      do {
        let place = RecordFolder(url: partial)
        var export = try RecordExport(connection, to: place, named: folder.path)
        try await export.run(zones: zones, types: types)
        try FileManager.default.moveItem(at: partial, to: folder)
        return export.result
      } catch {
        try? FileManager.default.removeItem(at: partial)
        guard error is CocoaError else { throw error }
        throw CommandFailure(
          "UNWRITABLE_FILE",
          what: "nothing was exported",
          why: "\(folder.path) cannot be written: \(error.localizedDescription)",
          next: "check that the folder exists and is writable, and has room"
        )
      }
    }
  }
}
