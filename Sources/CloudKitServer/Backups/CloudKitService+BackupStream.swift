import CloudKitWebServices
import Foundation
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A backup that the caller writes, where the server itself may not.
extension CloudKitService {
  /// The copy of the database while a backup is sent.
  var backupCopyFolder: URL {
    if let folder = configuration.dataFolder {
      return folder.appendingPathComponent("backup.partial")
    }
    // Several servers in memory may share this folder.
    let number = UInt(bitPattern: ObjectIdentifier(self).hashValue)
    return FileManager.default.temporaryDirectory
      .appendingPathComponent("watershed-backup-\(getpid())-\(number)")
  }

  /// `POST /admin/1/backup/stream`: a tar archive.
  func streamBackup(
    _ request: WebServiceRequest,
    _ body: BodySource
  ) async throws -> StreamedResponse {
    guard isOwnHost(request) else {
      throw ErrorDictionary(.accessDenied, "the admin API is not served under this host name")
    }
    guard request.method == "POST" else { throw ErrorDictionary.noHandler }
    let caller = try await administrator(request)
    guard caller.isOperator else { throw ErrorDictionary(.accessDenied, Self.backupRight) }
    let isConfirmed = try await Self.confirms(body)
    do {
      try await assets.bindStore()
    } catch let error as AssetStoreMismatch {
      throw ErrorDictionary(.badRequest, error.description)
    }
    guard let turn = BackupTurn(backupRuns) else {
      throw ErrorDictionary(.tryAgainLater, "another backup is being sent", retryAfter: 60)
    }
    auditLog.record(
      "backup.create",
      by: caller.name,
      about: "stream",
      from: SenderAddress(request.clientAddress),
      isOperator: true
    )
    let archive = BackupArchive(service: self)
    return StreamedResponse(
      status: 200,
      headers: [
        WebServiceName.contentType: "application/x-tar",
        "cache-control": "no-store",
        "content-disposition": "attachment; filename=\"backup.tar\"",
        "content-security-policy": "sandbox; default-src 'none'",
        "x-content-type-options": "nosniff",
      ],
      body: .stream(nil) { [logger] sink in
        defer { withExtendedLifetime(turn) {} }
        do {
          try await archive.write(to: sink)
          if !isConfirmed { archive.service.noteBackup() }
        } catch {
          // The reply has begun: its end without a manifest is what the client reads of it.
          logger.error("the backup was not sent", metadata: ["error": "\(error)"])
          throw error
        }
      }
    )
  }

  /// Whether the caller of a stream confirms the backup itself; a body that says nothing of it is ignored.
  private static func confirms(_ body: BodySource) async throws -> Bool {
    let limit = 1024
    let received = Mutex(Data())
    try await body { piece in
      received.withLock { if $0.count < limit { $0.append(piece.prefix(limit)) } }
    }
    let data = received.withLock { $0 }
    return (try? WireCoding.decode(BackupRequest.self, from: data))?.confirms == true
  }

  /// Admin call `backup/confirm`: a backup is complete where it will be kept.
  func confirmBackup(_ call: AdminCall) throws -> AdminReply {
    guard call.isOperator else { throw ErrorDictionary(.accessDenied, Self.backupRight) }
    noteBackup()
    return call.done(auditLog.record("backup.confirm", by: call, about: ""))
  }

  /// Why an administrator's session is refused: a backup holds the keys.
  package static let backupRight =
    "A backup needs the operator's token, which is in the server's data folder."

  /// Stores the time for the metrics; a failure does not invalidate the backup.
  func noteBackup() {
    guard let folder = configuration.dataFolder else { return }
    try? LastBackup.note(in: folder, now: now)
  }

  static func backupPath(of place: AssetPlace) -> String {
    "\(assetFolderName)/\(place.partition.rawValue)/\(place.file.prefix(2))/\(place.file)"
  }
}

/// Whether a backup is being sent.
final class BackupRuns: Sendable {
  fileprivate let isRunning = Atomic(false)
}

/// The turn of the one backup that is sent: each needs room for a copy of the database.
private final class BackupTurn: Sendable {
  private let runs: BackupRuns

  init?(_ runs: BackupRuns) {
    guard !runs.isRunning.exchange(true, ordering: .acquiringAndReleasing) else { return nil }
    self.runs = runs
  }

  deinit { runs.isRunning.store(false, ordering: .releasing) }
}
