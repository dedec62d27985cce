import CloudKitWebServices
import Crypto
import Effects
import Foundation
import Synchronization

/// A backup as a tar archive: the database, the files, the keys, and the manifest as the last member.
///
/// The server writes nothing outside of its data folder, where a copy of the database is until the
/// archive ends. A reader that does not find the manifest has an incomplete backup.
struct BackupArchive: Sendable {
  let service: CloudKitService

  /// Seconds between two comments while the database is copied: connections without any byte are
  /// closed after a minute, by proxies and by our own client.
  static let pause = 15.0
  private static let pieceSize: Int64 = 1 << 18

  typealias Sink = @Sendable (Data) async throws -> Void

  func write(to sink: @escaping Sink) async throws {
    let folder = service.backupCopyFolder
    defer { try? FileManager.default.removeItem(at: folder) }
    try prepare(folder)
    // The first byte answers the client before the work.
    try await sink(comment)
    let database = folder.appendingPathComponent(CloudKitService.databaseFileName)
    try await sendingComments(to: sink) { [service] in
      try await service.effects.waitingLane("server backup").run {
        try service.storage.copy(to: database)
      }
    }
    var files = [try await send(database, to: sink)]
    for partition in try await service.assets.store.partitions() {
      for file in try await service.files(in: partition, usedIn: database) {
        files.append(try await send(AssetPlace(partition, file.name), file.size, to: sink))
      }
    }
    let keys = folder.appendingPathComponent(CloudKitService.keyFileName)
    do {
      try service.vault.export(to: keys)
    } catch let error as KeyRingMismatch {
      throw BackupError(description: error.description)
    }
    files.append(try await send(keys, to: sink))
    let manifest = try WireCoding.encode(
      BackupManifest(
        created: service.now,
        incarnation: service.storage.incarnation,
        files: files
      )
    )
    try await sink(header(BackupManifest.fileName, Int64(manifest.count)))
    try await sink(manifest + TarArchive.padding(Int64(manifest.count)) + TarArchive.end)
  }

  private func prepare(_ folder: URL) throws {
    try? FileManager.default.removeItem(at: folder)
    try FileManager.default.createDirectory(
      at: folder,
      withIntermediateDirectories: true,
      attributes: PrivateFile.folderAttributes
    )
  }

  // MARK: Members

  private var comment: Data {
    TarArchive.comment("the database is being copied", modified: service.effects.now)
  }

  private func header(_ path: String, _ size: Int64) -> Data {
    TarArchive.header(path: path, size: size, modified: service.effects.now)
  }

  /// Sends a file of the copy's folder.
  private func send(_ file: URL, to sink: @escaping Sink) async throws -> BackupManifest.File {
    let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
    let size = (attributes[.size] as? NSNumber)?.int64Value ?? 0
    let lane = service.effects.waitingLane("server backup")
    return try await send(file.lastPathComponent, size, to: sink) { sink in
      var offset: Int64 = 0
      while offset < size {
        let start = offset
        let piece = try await lane.run { try Self.piece(of: file, from: start) }
        guard !piece.isEmpty else { break }
        try await sink(piece)
        offset += Int64(piece.count)
      }
    }
  }

  private static func piece(of file: URL, from offset: Int64) throws -> Data {
    let handle = try FileHandle(forReadingFrom: file)
    defer { try? handle.close() }
    try handle.seek(toOffset: UInt64(offset))
    return try handle.read(upToCount: Int(pieceSize)) ?? Data()
  }

  /// Sends the file of an asset.
  private func send(
    _ place: AssetPlace,
    _ size: Int64,
    to sink: @escaping Sink
  ) async throws -> BackupManifest.File {
    let path = CloudKitService.backupPath(of: place)
    return try await send(path, size, to: sink) { [service] sink in
      guard size > 0 else { return }
      try await service.assets.store.read(place, 0..<size, into: sink)
    }
  }

  private func send(
    _ path: String,
    _ size: Int64,
    to sink: @escaping Sink,
    _ read: (@escaping Sink) async throws -> Void
  ) async throws -> BackupManifest.File {
    try await sink(header(path, size))
    let sum = RunningChecksum()
    try await read { piece in
      sum.add(piece)
      try await sink(piece)
    }
    let (count, checksum) = sum.result
    guard count == size else {
      throw BackupError(description: "\(path) has \(count) bytes instead of \(size).")
    }
    try await sink(TarArchive.padding(size))
    return BackupManifest.File(path: path, size: size, checksum: checksum)
  }

  // MARK: Waiting

  /// Sends a comment now and then while the work runs.
  private func sendingComments(
    to sink: @escaping Sink,
    _ work: @escaping @Sendable () async throws -> Void
  ) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { [self] in
        while true {
          do { try await service.effects.clock.sleep(seconds: Self.pause) } catch { return }
          // A sink completes its piece even if this task is cancelled concurrently.
          try await sink(comment)
        }
      }
      do { try await work() } catch {
        group.cancelAll()
        throw error
      }
      group.cancelAll()
      try await group.waitForAll()
    }
  }
}

/// The size and the checksum of a file that is sent in pieces.
private final class RunningChecksum: Sendable {
  private struct State {
    var count: Int64 = 0
    var hash = SHA256()
  }

  private let state = Mutex(State())

  func add(_ piece: Data) {
    state.withLock { state in
      state.count += Int64(piece.count)
      state.hash.update(data: piece)
    }
  }

  var result: (count: Int64, checksum: String) {
    state.withLock { ($0.count, Data($0.hash.finalize()).hexadecimal) }
  }
}
