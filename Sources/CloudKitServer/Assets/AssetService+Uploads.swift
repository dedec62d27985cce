import CloudKitWebServices
import Foundation
import Synchronization

/// An upload URL is valid for one file: its bytes are reserved when the upload begins, and the
/// stored file is recorded under the permit's ID.
extension AssetService {
  /// Begins an upload; its bytes are reserved at once if its size is known, else as they are
  /// received.
  func beginUpload(announced: Int64?, _ permit: UploadPermit) async throws -> UploadRoom {
    do throws(UploadLedger.Refusal) {
      try uploads.open(permit, limit: limits.openUploads)
    } catch {
      throw refusal(error)
    }
    let room = UploadRoom(permit)
    do {
      try await take(DatabaseQuotas.room(of: announced ?? 0), room)
    } catch {
      endUpload(room)
      throw error
    }
    return room
  }

  func endUpload(_ room: UploadRoom) { uploads.close(room.permit, room.taken.withLock { $0 }) }

  /// Reserves bytes for the given total of an upload.
  func extend(_ room: UploadRoom, to bytes: Int64) async throws {
    let missing = DatabaseQuotas.room(of: bytes) - room.taken.withLock { $0 }
    guard missing > 0 else { return }
    do {
      // In blocks, so that few pieces need a reservation.
      try await take(max(missing, Self.uploadBlock), room)
    } catch is ErrorDictionary where missing < Self.uploadBlock {
      try await take(missing, room)
    }
  }

  private func take(_ bytes: Int64, _ room: UploadRoom) async throws {
    let quota = room.permit.scope == .public ? limits.publicQuota : limits.userQuota
    var left: Int64?
    if let quota { left = quota - (try await quotas.usedBytes(in: room.permit.partition)) }
    do throws(UploadLedger.Refusal) {
      try uploads.take(bytes, room.permit, left: left)
    } catch {
      throw refusal(error)
    }
    room.taken.withLock { $0 += bytes }
  }

  private func refusal(_ refusal: UploadLedger.Refusal) -> ErrorDictionary {
    switch refusal {
    case .tooMany: ErrorDictionary(.throttled, "too many uploads at once", retryAfter: 1)
    case .full:
      ErrorDictionary(
        .quotaExceeded,
        "the database has no room for the file; delete something first",
        extension: ErrorExtension(code: .limitExceeded)
      )
    }
  }

  /// The bytes that an upload of unknown size reserves at a time.
  private static let uploadBlock: Int64 = 1_048_576

  /// The file uploaded earlier with a permit; nil if there is none.
  func firstUpload(of permit: UploadPermit) throws -> AssetValue? {
    let key = DirectoryEntry.Key(.upload, permit.id)
    return try storage.read { try $0.entry(key) }.map {
      try WireCoding.decode(AssetValue.self, from: $0.body, origin: .storage)
    }
  }

  static let usedForAnotherFile = ErrorDictionary(
    .accessDenied,
    "the upload URL was used for another file"
  )

  /// Counts an upload as a request of its user: each writes a file and a row.
  ///
  /// The client retries later if the user's uploads exceed their rate of bytes.
  func throttleUpload(_ permit: UploadPermit) throws {
    var delays: [Double?] = []
    if let rate = limits.requestsPerSecond, rate > 0 {
      delays.append(
        throttle.delay(
          for: "user \(permit.uploader)",
          rate: rate,
          burst: limits.requestBurst,
          now: now
        )
      )
    }
    delays.append(
      throttle.delay(
        for: "upload \(permit.uploader)",
        rate: limits.uploadBytesPerSecond,
        burst: limits.uploadBurst,
        now: now
      )
    )
    if let seconds = delays.compactMap(\.self).max() {
      throw ErrorDictionary(.throttled, "too many uploads, slow down", retryAfter: seconds)
    }
    guard let share = share(of: permit) else { return }
    // Uploaded files count against the share until a record refers to them; the collection of
    // unreferenced files returns their bytes.
    let delay = throttle.delay(
      for: share.name,
      rate: share.rate,
      burst: share.bytes,
      now: now
    )
    if delay != nil { throw DatabaseQuotas.shareIsFull(Int64(share.bytes), in: permit.scope) }
  }

  private struct UploadShare {
    var name: String
    var bytes: Double
    /// Bytes in a second.
    var rate: Double
  }

  /// The bound of a user's uploads to other users' databases; nil if there is none.
  private func share(of permit: UploadPermit) -> UploadShare? {
    guard permit.scope != .private, permit.credential?.key == nil,
      let share = limits.publicUserQuota
    else { return nil }
    return UploadShare(
      name: "\(permit.scope.rawValue) files \(permit.partition.rawValue) \(permit.user)",
      bytes: Double(max(share, 1)),
      rate: Double(max(share, 1)) / max(limits.assetGrace, 1)
    )
  }

  /// Counts bytes that have arrived, those that are kept nowhere too.
  func countUpload(_ bytes: Int, _ permit: UploadPermit) {
    throttle.spend(
      Double(bytes),
      for: "upload \(permit.uploader)",
      rate: limits.uploadBytesPerSecond,
      burst: limits.uploadBurst,
      now: now
    )
    guard let share = share(of: permit) else { return }
    throttle.spend(
      Double(bytes),
      for: share.name,
      rate: share.rate,
      burst: share.bytes,
      now: now
    )
  }

  /// Counts an upload to a used address among the open ones while the body runs.
  func countingOpen<Result>(
    _ permit: UploadPermit,
    _ body: () async throws -> Result
  ) async throws -> Result {
    do throws(UploadLedger.Refusal) {
      try uploads.open(permit, limit: limits.openUploads)
    } catch {
      throw refusal(error)
    }
    defer { uploads.close(permit, 0) }
    return try await body()
  }

  /// Records a received file as the first one of its permit.
  ///
  /// A repeated upload of the same file returns the first one: a client whose reply was lost
  /// repeats the upload. Another file is refused.
  func recordOnce(
    _ value: AssetValue,
    _ upload: any AssetUpload,
    _ place: AssetPlace,
    _ permit: UploadPermit
  ) async throws -> AssetValue {
    let key = DirectoryEntry.Key(.upload, permit.id)
    if let known = try storage.read({ try $0.entry(key) }) {
      await upload.cancel()
      return try same(value, as: known)
    }
    do {
      try await upload.finish()
    } catch {
      await upload.cancel()
      throw error
    }
    let body = try WireCoding.encode(value)
    let first = try await writer.write { [self] () -> (WriteBatch?, DirectoryEntry?) in
      if let known = try storage.read({ try $0.entry(key) }) { return (nil, known) }
      var batch = WriteBatch()
      batch.expectedEntries[key] = .some(nil)
      batch.savedEntries = [
        DirectoryEntry(key, expires: permit.expires, body: body),
        unusedUpload(place),
      ]
      return (batch, nil)
    }
    guard let first else {
      quotas.add(DatabaseQuotas.room(of: value.size ?? 0), in: permit.partition)
      return value
    }
    // Two uploads ran at once.
    try await store.remove(place)
    return try same(value, as: first)
  }

  private func same(_ value: AssetValue, as entry: DirectoryEntry) throws -> AssetValue {
    let known = try WireCoding.decode(AssetValue.self, from: entry.body, origin: .storage)
    guard known.fileChecksum == value.fileChecksum, known.size == value.size else {
      throw Self.usedForAnotherFile
    }
    return known
  }
}
