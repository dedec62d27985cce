import CloudKitWebServices
import Synchronization

/// The uploads in progress: their reserved bytes, and their number per user.
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

  /// Counts a starting upload.
  func open(_ permit: UploadPermit, limit: Int) throws(Refusal) {
    let isRefused = state.withLock { state in
      guard state.open[permit.uploader, default: 0] < limit else { return true }
      state.open[permit.uploader, default: 0] += 1
      return false
    }
    if isRefused { throw .tooMany }
  }

  /// Reserves bytes of the remaining quota besides other uploads; nil: no limit.
  func take(_ bytes: Int64, _ permit: UploadPermit, left: Int64?) throws(Refusal) {
    let isRefused = state.withLock { state in
      if let left, state.bytes[permit.partition, default: 0] + bytes > left { return true }
      state.bytes[permit.partition, default: 0] += bytes
      return false
    }
    if isRefused { throw .full }
  }

  /// Ends an upload and releases its reserved bytes.
  func close(_ permit: UploadPermit, _ bytes: Int64) {
    state.withLock { state in
      let open = state.open[permit.uploader, default: 1] - 1
      state.open[permit.uploader] = open > 0 ? open : nil
      let left = state.bytes[permit.partition, default: 0] - bytes
      state.bytes[permit.partition] = left > 0 ? left : nil
    }
  }
}

/// The bytes that one upload has reserved of its database's quota.
final class UploadRoom: Sendable {
  let permit: UploadPermit
  let taken = Mutex<Int64>(0)

  init(_ permit: UploadPermit) { self.permit = permit }
}
