import ArgumentParser
import CloudKitServer
import Foundation

/// `watershed backup`: copies of a server's data, its files and its keys.
struct BackupCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "backup",
    abstract: "Back up a server, list backups, check one, restore one.",
    subcommands: [Create.self, List.self, Verify.self, Restore.self]
  )

  struct Verify: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract:
        "Check a backup: every file, the database, every asset; exit code 2 if it is damaged."
    )

    @OptionGroup var output: OutputOptions
    @Argument(help: "The backup's folder, or s3://BUCKET/PREFIX/NAME.") var folder: String
    @Option(help: "For a bucket: the configuration whose s3 has its endpoint and keys.")
    var config: String?

    private struct Result: Encodable {
      var isGood: Bool
      var problems: [String]
    }

    func run() async throws {
      try await perform("the backup cannot be checked") {
        let problems = try await BackupSource(folder, config: config).open { try $0.problems() }
        try output.write(
          Result(isGood: problems.isEmpty, problems: problems),
          text: problems.isEmpty
            ? "The backup is complete and undamaged." : problems.joined(separator: "\n")
        )
        if !problems.isEmpty { throw ExitCode(ExitCodes.found) }
      }
    }
  }

  struct Restore: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract:
        "Restore a backup into an empty data folder, or into an empty PostgreSQL and a folder.",
      discussion: """
        A backup of either kind of storage can be restored into either, which moves a server from its file to a \
        PostgreSQL, and back. Clients detect that the data is older than what they have seen, compare it with theirs, and send again \
        what the server lost.
        """
    )

    @OptionGroup var output: OutputOptions
    @OptionGroup var consent: ConsentOptions
    @Argument(help: "The backup's folder, or s3://BUCKET/PREFIX/NAME.") var folder: String
    @Option(name: .customLong("data"), help: "The data folder to create.") var data: String
    @Option(
      help: ArgumentHelp(
        "A PostgreSQL database for everything but assets, as postgresql://USER@HOST/NAME.",
        valueName: "url"
      )
    )
    var database: String?
    @Option(help: "The configuration that the server will have: its database, bucket and key file.")
    var config: String?
    @Option(
      help: ArgumentHelp(
        "The configuration with the endpoint and keys of the bucket that has the backup.",
        valueName: "file"
      )
    )
    var bucketConfig: String?
    @Flag(
      help: """
        The bucket of --config has the files of the server whose lost data the restored takes the place of. Without \
        it a bucket with files is refused.
        """
    )
    var sameBucket = false

    func validate() throws {
      guard (bucketConfig != nil) == (BucketAddress(folder) != nil) else {
        throw ValidationError(
          "Give --bucket-config with a backup in a bucket, and with no other: --config says where the server's own "
            + "files will be."
        )
      }
    }

    func run() async throws {
      try await perform("the backup was not restored") {
        let source = BackupSource(folder, config: bucketConfig)
        // Before anything is downloaded or created.
        try await source.check()
        let configuration = try configuration()
        let place = URL(fileURLWithPath: data, isDirectory: true).standardizedFileURL
        guard !DataFolderLock.isHeld(in: place) else { throw ServeError.folderInUse(place.path) }
        try BackupFolder.refuseTaken(place, configuration)
        try await BackupFolder.refuseUsed(configuration, takesOverFiles: sameBucket)
        // A drill finds what the restore would refuse.
        if consent.dryRun { try await source.open { try $0.refuseDamage() } }
        let deed = "create the data folder \(data) from the backup"
        guard try consent.isGiven(to: deed, output) else { return }
        try await source.open { try await restore($0, configuration) }
      }
    }

    /// Where the restored data goes besides the folder.
    private func configuration() throws -> ServiceConfiguration {
      var settings = try ConfigurationSource(file: config).load()
      if let database { settings.database = database }
      var configuration = ServiceConfiguration(database: settings.database)
      try settings.apply(to: &configuration, token: "", LogSettings.logger(settings))
      return configuration
    }

    private func restore(
      _ backup: BackupFolder,
      _ configuration: ServiceConfiguration
    ) async throws {
      let held = try DataFolder(opening: data)
      defer { held.close() }
      try await backup.restore(
        to: held.url,
        configuration: configuration,
        takesOverFiles: sameBucket
      )
      let start =
        "watershed serve --data \(data)" + (database == nil ? "" : " --database URL")
        + (config.map { " --config \($0)" } ?? "")
      try output.done(
        "Restored to \(held.url.path); start it: \(start)",
        ["data": held.url.path]
      )
    }
  }
}
