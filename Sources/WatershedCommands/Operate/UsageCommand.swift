import ArgumentParser
import CloudKitServer
import Foundation

/// `watershed usage`: the sizes of databases.
struct UsageCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "usage",
    abstract: "List the size of each database, in bytes, the largest first.",
    discussion: """
      The size is what counts against the quota: records, index entries and files, and a hundred bytes or two for each \
      row. Counts are up to a minute old.
      """
  )

  @OptionGroup var server: ServerOptions
  @OptionGroup var output: OutputOptions
  @Option(help: "Only databases of this container.") var containerId: String?
  @Option(help: "Only databases of this user.") var user: String?

  func run() async throws {
    try await perform("the sizes cannot be listed") {
      let databases = try await server.connect { try await $0.usage() }
        .filter { containerId == nil || $0.container == containerId }
        .filter { user == nil || $0.userName == user }
        .sorted { $0.bytes > $1.bytes }
      try output.write(
        "databases",
        databases,
        columns: databases.map { database in
          [
            database.container, database.environment.rawValue, database.database.rawValue,
            database.userName ?? "", "\(database.bytes)", "\(database.files)",
            "\(database.fileBytes)", database.quota.map { "\($0)" } ?? "",
          ]
        },
        titles: [
          "container", "environment", "database", "user", "bytes", "files", "of files", "quota",
        ]
      )
    }
  }
}

extension AdminConnection {
  /// The sizes of all databases.
  func usage() async throws -> [DatabaseUsage] {
    var found: [DatabaseUsage] = []
    var after: String?
    repeat {
      let page: UsagePage = try await call(.usage(.list), AdminPage(after: after))
      found += page.databases
      after = page.next
    } while after != nil
    return found
  }
}

extension [DatabaseUsage] {
  /// A summary of the data that a deletion of these databases loses, for the confirmation.
  var summary: String {
    let bytes = reduce(0) { $0 + $1.bytes }
    let files = reduce(0) { $0 + $1.files }
    return
      "\(Count.of(count, "database")), \(Count.of(Int(bytes), "byte")), \(Count.of(files, "file"))"
  }
}
