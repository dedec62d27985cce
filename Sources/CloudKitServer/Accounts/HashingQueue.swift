import CloudKitWebServices
import Effects
import Synchronization

/// The one lane in which passwords are hashed, with a bounded queue.
///
/// Each hash takes 32 MB and a third of a second of one core: one at a time bounds the memory, and a
/// bounded queue bounds the wait. A request that finds the queue full, or its network's or site's
/// share of it taken, is refused with a time to come back instead of holding its body and connection.
///
/// Some places are kept for networks that the name was signed in from before, and for calls of this
/// process: senders from many networks fill the others, and people whose networks are known still
/// sign in.
final class HashingQueue: Sendable {
  fileprivate struct Waiting {
    var total = 0
    /// Of the total, those in places that are kept for known networks.
    var known = 0
    var byNetwork: [String: Int] = [:]
    var bySite: [String: Int] = [:]
    var knownByNetwork: [String: Int] = [:]
  }

  /// What a place counts as, until it is given back.
  fileprivate enum Place {
    case common
    case known
  }

  private let lane: Lane
  private let waiting = Mutex(Waiting())

  init(_ lane: Lane) { self.lane = lane }

  /// Runs the body with a place in the queue; inside, `hash` uses the lane.
  ///
  /// The place is taken first: what the body does before hashing, such as reserving an attempt, is
  /// bounded with it. `isKnown` says that the name was signed in from the sender's network before.
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
  /// A place among those for everyone or, where these are taken, one that is kept for known networks.
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
      // Those who share a network with an account of their own do not take all the kept places.
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
  /// Counts down, and forgets what nothing is counted for.
  fileprivate mutating func release(_ key: String) {
    let left = (self[key] ?? 1) - 1
    self[key] = left > 0 ? left : nil
  }
}
