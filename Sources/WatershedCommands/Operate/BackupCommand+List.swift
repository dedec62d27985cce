import ArgumentParser
import CloudKitServer
import Foundation

extension BackupCommand {
  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "List the complete backups of a folder or a bucket, oldest first.",
      discussion: """
        watershed backup list /var/backups/watershed
        watershed backup list s3://backups/watershed --config /etc/watershed.json
        """
    )

    @OptionGroup var output: OutputOptions
    @Argument(help: "The folder of backups, or s3://BUCKET/PREFIX.") var place: String
    @Option(help: "For a bucket: the configuration whose s3 has its endpoint and keys.")
    var config: String?

    private struct Backup: Encodable {
      var path: String
      /// Milliseconds since 1970.
      var created: Int64
      var files: Int
      var bytes: Int64

      init(_ path: String, _ manifest: BackupManifest) {
        self.path = path
        created = manifest.created
        files = manifest.files.count
        bytes = manifest.files.reduce(0) { $0 + $1.size }
      }
    }

    func run() async throws {
      try await perform("the backups cannot be listed") {
        let backups = try await found().sorted { ($0.created, $0.path) < ($1.created, $1.path) }
        try output.write(
          "backups",
          backups,
          columns: backups.map { backup in
            let time = Date(timeIntervalSince1970: Double(backup.created) / 1000)
            return [backup.path, time.formatted(.iso8601), "\(backup.files)", "\(backup.bytes)"]
          },
          titles: ["path", "created", "files", "bytes"]
        )
      }
    }

    private func found() async throws -> [Backup] {
      guard let address = BucketAddress(place) else {
        let parent = URL(fileURLWithPath: place, isDirectory: true).standardizedFileURL
        return try FileManager.default.contentsOfDirectory(atPath: parent.path).compactMap { name in
          let folder = parent.appendingPathComponent(name)
          // Not a backup, or not a complete one.
          return (try? BackupFolder(folder).manifest()).map { Backup(folder.path, $0) }
        }
      }
      let bucket = try ConfigurationSource(file: config).load().backups(at: address)
      var found: [Backup] = []
      for name in try await bucket.names() {
        // As in a folder, what is not a complete backup is left out.
        guard case .readable(let manifest) = try await bucket.manifest(of: name) else { continue }
        found.append(Backup(address.appending(name).text, manifest))
      }
      return found
    }
  }
}
