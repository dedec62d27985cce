import CloudKitWebServices
import Effects
import Synchronization

/// The one lane in which passwords are hashed, with a bounded queue.
///
/// Each hash takes 32 MB and a third of a second of one core: one at a time limits the memory, and
/// a bounded queue limits the wait. A request that finds the queue full, or its network's or site's
/// share of it used, is refused with a retry time instead of keeping its body and connection.
///
/// Some places are reserved for networks from which the name has signed in before, and for calls of
/// this process: senders from many networks can fill the others, and users from known networks can
/// still sign in.
final class HashingQueue: Sendable {
  fileprivate struct Waiting {
    var total = 0
    /// The number in reserved places, of the total.
    var known = 0
    var byNetwork: [String: Int] = [:]
    var bySite: [String: Int] = [:]
    var knownByNetwork: [String: Int] = [:]
  }

  /// The kind of a place, until it is released.
  fileprivate enum Place {
    case common
    case known
  }

  private let lane: Lane
  private let waiting = Mutex(Waiting())

  init(_ lane: Lane) { self.lane = lane }

  /// Runs the body with a place in the queue; inside, `hash` uses the lane.
  ///
  /// The place is taken first, which also limits what the body does before hashing, such as
  /// reserving an attempt. `isKnown` means that the name has signed in from the sender's network
  /// before.
  func withPlace<Result: Sendable>(
    of sender: SenderAddress?,
    isKnown: Bool = false,
    _ limits: ServiceLimits,
    _ body: (_ lane: Lane) async throws -> Result
  ) async throws -> Result {
    let place = waiting.withLock { $0.place(for: sender, isKnown: isKnown, limits) }
    guard let place else {
      throw ErrorDictionary(.throttled, "too many sign-ins at once, try again", retryAfter: 2)
    }
    defer { waiting.withLock { $0.leave(place, sender) } }
    return try await body(lane)
  }
}

extension HashingQueue.Waiting {
  /// Takes an unreserved place or, if there is none, one that is reserved for known networks.
  fileprivate mutating func place(
    for sender: SenderAddress?,
    isKnown: Bool,
    _ limits: ServiceLimits
  ) -> HashingQueue.Place? {
    let common = limits.waitingHashes - limits.waitingHashesOfKnown
    if total - known < common, hasRoom(for: sender, limits) {
      total += 1
      if let sender {
        byNetwork[sender.network, default: 0] += 1
        bySite[sender.site, default: 0] += 1
      }
      return .common
    }
    guard isKnown || sender == nil, known < limits.waitingHashesOfKnown else { return nil }
    if let sender {
      // Users who share a network with other accounts cannot take all the reserved places.
      guard knownByNetwork[sender.network, default: 0] < limits.waitingHashesPerKnownNetwork else {
        return nil
      }
      knownByNetwork[sender.network, default: 0] += 1
    }
    total += 1
    known += 1
    return .known
  }

  private func hasRoom(for sender: SenderAddress?, _ limits: ServiceLimits) -> Bool {
    guard let sender else { return true }
    return byNetwork[sender.network, default: 0] < limits.waitingHashesPerNetwork
      && bySite[sender.site, default: 0] < limits.waitingHashesPerSite
  }

  fileprivate mutating func leave(_ place: HashingQueue.Place, _ sender: SenderAddress?) {
    total -= 1
    switch place {
    case .common:
      guard let sender else { return }
      byNetwork.release(sender.network)
      bySite.release(sender.site)
    case .known:
      known -= 1
      if let sender { knownByNetwork.release(sender.network) }
    }
  }
}

extension [String: Int] {
  /// Decrements a count, and removes it at zero.
  fileprivate mutating func release(_ key: String) {
    let left = (self[key] ?? 1) - 1
    self[key] = left > 0 ? left : nil
  }
}
