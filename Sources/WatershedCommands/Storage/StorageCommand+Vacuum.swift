import ArgumentParser
import CloudKitServer

extension StorageCommand {
  /// `watershed storage vacuum`.
  struct Vacuum: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Give the free space in a stopped server's database file back to the file system.",
      discussion: """
        After large deletions the file keeps its size, and new data fills it again. This rewrites the \
        file; it needs as much free space as the file has meanwhile. PostgreSQL does this by itself.
        """
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions

    private struct Result: Encodable {
      var bytesBefore: Int64
      var bytesAfter: Int64
    }

    func run() async throws {
      try await perform("the database was not rewritten") {
        let settings = try server.settings()
        guard settings.database == nil else {
          throw CommandFailure(
            "BAD_REQUEST",
            what: "the database was not rewritten",
            why: "the server's data is in PostgreSQL, whose autovacuum reuses free space",
            next: "leave it to PostgreSQL, or run its VACUUM"
          )
        }
        guard try ServiceConfiguration(dataFolder: settings.dataURL).hasData() else {
          throw CommandFailure(
            "NO_DATA",
            what: "the database was not rewritten",
            why: "the folder \(settings.dataURL.path) holds no server's data",
            next: "name the server with --data or --config"
          )
        }
        let held = try DataFolder(opening: settings.data)
        defer { held.close() }
        let size = try SQLiteStorage.vacuum(held.url)
        try output.write(
          Result(bytesBefore: size.before, bytesAfter: size.after),
          text: "\(size.before) bytes before, \(size.after) after"
        )
      }
    }
  }
}
