import CloudKitServer
import Synchronization

/// Limits the bytes of request bodies, or of replies that wait to be written, in memory over all
/// connections.
///
/// A limit of each one does not bound their sum. Half is for one site at most (an IPv4 address, or 48
/// bits of an IPv6 address), so that one client cannot keep the others' requests out.
final class BufferBudget: Sendable {
  private struct Held {
    var total = 0
    var bySite: [String: Int] = [:]
  }

  private let limit: Int
  private let siteLimit: Int
  private let held = Mutex(Held())

  init(limit: Int) {
    self.limit = limit
    siteLimit = limit / 2
  }

  /// The bytes in use.
  var total: Int { held.withLock { $0.total } }

  /// Reserves bytes until `release`; false if the budget is used up.
  func take(_ bytes: Int, for site: String?) -> Bool {
    held.withLock { held in
      let own = site.map { held.bySite[$0, default: 0] } ?? 0
      guard held.total + bytes <= limit, own + bytes <= siteLimit else { return false }
      held.total += bytes
      if let site { held.bySite[site] = own + bytes }
      return true
    }
  }

  func release(_ bytes: Int, for site: String?) {
    held.withLock { held in
      held.total -= bytes
      guard let site else { return }
      let left = (held.bySite[site] ?? bytes) - bytes
      held.bySite[site] = left > 0 ? left : nil
    }
  }
}
