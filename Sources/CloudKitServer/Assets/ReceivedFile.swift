import CloudKitWebServices
import Crypto
import Foundation
import Synchronization

/// Counts and hashes the file in the received body.
final class ReceivedFile: Sendable {
  private struct State {
    var form: MultipartFile?
    var hash = SHA256()
    var size = 0

    /// The bytes, if there are any within the limit.
    mutating func add(_ data: Data, limit: Int) -> Data? {
      size = min(size + data.count, limit + 1)
      guard size <= limit, !data.isEmpty else { return nil }
      hash.update(data: data)
      return data
    }
  }

  private let limit: Int
  private let state: Mutex<State>

  init(limit: Int, form: MultipartFile?) {
    self.limit = limit
    state = Mutex(State(form: form))
  }

  /// The received bytes of the file.
  var size: Int { state.withLock { $0.size } }

  var fits: Bool { state.withLock { $0.size <= limit } }

  /// The bytes of a piece to be written.
  func take(_ data: Data) throws -> Data? {
    try state.withLock { state in
      let part = try state.form?.take(data) ?? data
      return state.add(part, limit: limit)
    }
  }

  /// The remaining bytes after the whole body was received.
  func finish() throws -> Data? {
    try state.withLock { state in
      guard let rest = try state.form?.finish() else { return nil }
      return state.add(rest, limit: limit)
    }
  }

  func result() -> (AssetDigest, Int64) {
    state.withLock { (AssetDigest($0.hash.finalize()), Int64($0.size)) }
  }
}
