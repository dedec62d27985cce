import CloudKitServer
import Synchronization

/// Bytes of request bodies, or of answers that wait to be written, that the process holds in memory
/// over all connections.
///
/// A limit of each one does not bound their sum. A part is for one network at most, so that one
/// client cannot keep the others' requests out.
final class BufferBudget: Sendable {
  private struct Held {
    var total = 0
    var byNetwork: [String: Int] = [:]
  }

  private let limit: Int
  private let networkLimit: Int
  private let held = Mutex(Held())

  init(limit: Int) {
    self.limit = limit
    networkLimit = limit / 2
  }

  /// Bytes held now.
  var total: Int { held.withLock { $0.total } }

  /// Whether there is room; what was taken is given back with `release`.
  func take(_ bytes: Int, for network: String?) -> Bool {
    held.withLock { held in
      let own = network.map { held.byNetwork[$0, default: 0] } ?? 0
      guard held.total + bytes <= limit, own + bytes <= networkLimit else { return false }
      held.total += bytes
      if let network { held.byNetwork[network] = own + bytes }
      return true
    }
  }

  func release(_ bytes: Int, for network: String?) {
    held.withLock { held in
      held.total -= bytes
      guard let network else { return }
      let left = (held.byNetwork[network] ?? bytes) - bytes
      held.byNetwork[network] = left > 0 ? left : nil
    }
  }
}
