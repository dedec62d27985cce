import ArgumentParser
import CloudKitServer
import CloudKitWebServices
import Foundation

extension BackupCommand {
  struct Create: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Write a backup to a folder of this machine, or to a bucket.",
      discussion: """
        It holds the keys of encrypted fields: keep it as safe as the server. The command writes the folder, \
        as its own user; a running server, here or with --server elsewhere, sends what is in it and needs \
        room for a copy of the database meanwhile. It takes the operator's token.

        watershed backup create /var/backups/watershed/today
        watershed backup create --in /var/backups/watershed --keep 14
        watershed backup create --in s3://backups/watershed --keep 30 --config /etc/watershed.json

        For a bucket the configuration has s3: its endpoint, region and keys are used, with the bucket of the address. \
        The backup is written to a temporary folder (TMPDIR), verified, and uploaded from there.
        """
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions
    @Argument(help: "A folder that does not exist yet, or s3://BUCKET/PREFIX/NAME.")
    var folder: String?
    @Option(
      name: .customLong("in"),
      help: ArgumentHelp(
        "A folder of backups, or s3://BUCKET/PREFIX, in which this one is named after the time; instead of FOLDER.",
        valueName: "parent"
      )
    )
    var parent: String?
    @Option(
      help: ArgumentHelp(
        "With --in: verify the new backup, then delete all but so many of the newest.",
        valueName: "count"
      )
    )
    var keep: Int?

    private struct Result: Encodable {
      var path: String
      var files: Int
      var bytes: Int64
      /// The backups that were deleted.
      var deleted: [String]?
    }

    func validate() throws {
      guard (folder == nil) != (parent == nil) else {
        throw ValidationError("Give the backup's folder, or --in with the folder of all backups.")
      }
      guard keep == nil || parent != nil else {
        throw ValidationError("--keep goes with --in: it deletes other backups of that folder.")
      }
      if let keep, keep < 1 { throw ValidationError("--keep takes 1 or more.") }
    }

    func run() async throws {
      try await perform("no backup was made") {
        if let address = BucketAddress(folder ?? parent ?? "") {
          return try await create(at: parent == nil ? address : address.appending(Self.name))
        }
        let place = URL(fileURLWithPath: folder ?? path(in: parent ?? "")).standardizedFileURL
        let summary = try await receive(in: place)
        let kept = KeptBackups(beside: place)
        if keep != nil { try kept.check() }
        await confirm()
        try report(summary, at: summary.path, keep.map { deleteOld(kept, allBut: $0) })
      }
    }

    /// Deletes older backups; what is left of them is a remark, since the new one is complete.
    private func deleteOld(_ kept: KeptBackups, allBut count: Int) -> [String] {
      do {
        let result = try kept.delete(allBut: count)
        remark(onFuture: result.future)
        for failure in result.failures {
          output.remark("The backup was made; an older one was not deleted: \(failure)")
        }
        return result.deleted
      } catch {
        output.remark("The backup was made; older ones were not deleted: \(error)")
        return []
      }
    }

    /// A machine without a battery for its clock makes backups of a later time than the next ones.
    private func remark(onFuture future: [String]) {
      guard !future.isEmpty else { return }
      output.remark(
        "Made at a later time than this backup, so neither counted nor deleted: "
          + "\(future.joined(separator: ", ")). Was a clock wrong? Then delete them."
      )
    }

    private static var name: String { KeptBackups.name(of: Date()) }

    private func receive(in place: URL) async throws -> BackupSummary {
      try await server.connect { connection in
        if let summary = try await connection.receiveBackup(in: place) { return summary }
        // The server is stopped: this process reads its data.
        return try await connection.call(
          .backup(.create),
          BackupRequest(path: place.path, confirms: true),
          as: BackupSummary.self
        )
      }
    }

    /// Has the server note the time of the backup, which is complete and in its place: the metrics show it.
    private func confirm() async {
      do {
        try await server.connect { connection in
          _ = try await connection.call(.backup(.confirm))
        }
      } catch {
        output.remark("The backup was made; the server did not note its time: \(error)")
      }
    }

    /// Writes a backup to a bucket, after it was verified.
    private func create(at address: BucketAddress) async throws {
      let (place, name) = try address.split()
      // Before anything is copied.
      let backups = try server.settings().backups(at: place)
      try await backups.refuseTaken(name)
      let summary = try await TemporaryFolder.with(.backup) { folder in
        let summary = try await receive(in: folder)
        let problems = try BackupFolder(folder).problems()
        guard problems.isEmpty else {
          throw BackupError(
            description: "The backup is damaged: \(problems.joined(separator: "; "))"
          )
        }
        try await backups.upload(folder, as: name)
        return summary
      }
      await confirm()
      var deleted: [String]?
      if let keep {
        do {
          let result = try await KeptBackups.delete(
            in: backups,
            at: place,
            allBut: keep,
            made: name
          )
          remark(onFuture: result.future)
          deleted = result.deleted
        } catch {
          output.remark("The backup was made; older ones could not be deleted: \(error)")
        }
      }
      try report(summary, at: address.text, deleted)
    }

    private func report(_ summary: BackupSummary, at path: String, _ deleted: [String]?) throws {
      try output.write(
        Result(path: path, files: summary.files, bytes: summary.bytes, deleted: deleted),
        text: "\(path): \(Count.of(summary.files, "file")), \(summary.bytes) bytes"
          + (deleted.map { "; \(Count.of($0.count, "older backup")) deleted" } ?? "")
      )
    }

    private func path(in parent: String) -> String {
      "\(parent)/\(Self.name)"
    }
  }
}

extension AdminConnection {
  /// Writes the backup that the server sends; nil if the server is this process.
  func receiveBackup(in folder: URL) async throws -> BackupSummary? {
    try ReceivedBackup.check(folder)
    let body = try WireCoding.encode(BackupRequest(confirms: true))
    guard let reply = try await transport.open(request(.backup(.stream), body)) else { return nil }
    try check(reply.response)
    var backup = try ReceivedBackup(to: folder)
    do {
      while let piece = try await reply.next() { try backup.take(piece) }
      return BackupSummary(try backup.finish(), path: folder.path)
    } catch {
      backup.discard()
      throw error
    }
  }
}
