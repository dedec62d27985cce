import CloudKitWebServices
import Foundation
import Synchronization

/// What is under way of uploads: how much room they may take, and how many a person has.
final class UploadLedger: Sendable {
  private struct State {
    var bytes: [PartitionID: Int64] = [:]
    var open: [String: Int] = [:]
  }

  private let state = Mutex(State())

  enum Refusal: Error {
    case tooMany
    case full
  }

  /// Takes room for an upload, of the room that is left beside other uploads; nil: no limit.
  func reserve(
    _ bytes: Int64,
    _ permit: UploadPermit,
    left: Int64?,
    limit: Int
  ) throws(Refusal) {
    let refusal: Refusal? = state.withLock { state in
      guard state.open[permit.user, default: 0] < limit else { return .tooMany }
      if let left, state.bytes[permit.partition, default: 0] + bytes > left { return .full }
      state.open[permit.user, default: 0] += 1
      state.bytes[permit.partition, default: 0] += bytes
      return nil
    }
    if let refusal { throw refusal }
  }

  func release(_ bytes: Int64, _ permit: UploadPermit) {
    state.withLock { state in
      let open = state.open[permit.user, default: 1] - 1
      state.open[permit.user] = open > 0 ? open : nil
      let left = state.bytes[permit.partition, default: 0] - bytes
      state.bytes[permit.partition] = left > 0 ? left : nil
    }
  }
}

/// An upload URL is good for one file: the room for it is taken when it begins to arrive, and what
/// arrived is noted under the permit's ID.
extension CloudKitService {
  func reserve(_ bytes: Int64, for permit: UploadPermit) async throws {
    let quota = permit.scope == .public ? limits.publicQuota : limits.userQuota
    var left: Int64?
    if let quota { left = quota - (try await usedBytes(in: permit.partition)) }
    do {
      try uploads.reserve(bytes, permit, left: left, limit: limits.openUploads)
    } catch {
      switch error {
      case .tooMany:
        throw ErrorDictionary(.throttled, "too many uploads at once", retryAfter: 1)
      case .full:
        throw ErrorDictionary(
          .quotaExceeded,
          "the database has no room for the file; delete something first",
          extension: ErrorExtension(code: .limitExceeded)
        )
      }
    }
  }

  /// Keeps a file that has arrived, the first one of its permit.
  ///
  /// The same file again is answered with the first one: a client whose reply was lost repeats the
  /// upload. Another file is refused.
  func keepOnce(
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
    let first = try await write { [storage] () -> (WriteBatch?, DirectoryEntry?) in
      if let known = try storage.read({ try $0.entry(key) }) { return (nil, known) }
      var batch = WriteBatch()
      batch.expectedEntries[key] = .some(nil)
      batch.savedEntries.append(DirectoryEntry(key, expires: permit.expires, body: body))
      return (batch, nil)
    }
    guard let first else {
      quotas.add(value.size ?? 0, in: permit.partition)
      return value
    }
    // Two came at once.
    try await assets.remove(place)
    return try same(value, as: first)
  }

  private func same(_ value: AssetValue, as entry: DirectoryEntry) throws -> AssetValue {
    let known = try WireCoding.decode(AssetValue.self, from: entry.body, origin: .storage)
    guard known.fileChecksum == value.fileChecksum, known.size == value.size else {
      throw ErrorDictionary(.accessDenied, "the upload URL was used for another file")
    }
    return known
  }
}
