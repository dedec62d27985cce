import CloudKitWebServices
import Effects
import Synchronization

/// The one lane in which passwords are hashed, with a bounded queue.
///
/// Each hash takes 32 MB and a third of a second of one core: one at a time bounds the memory, and a
/// bounded queue bounds the wait. A request that finds the queue full, or its network's share of it
/// taken, is refused with a time to come back instead of holding its body and connection.
final class HashingQueue: Sendable {
  private struct Waiting {
    var total = 0
    var byNetwork: [String: Int] = [:]
  }

  private let lane: Lane
  private let waiting = Mutex(Waiting())

  init(_ lane: Lane) { self.lane = lane }

  /// Runs the body with a place in the queue; inside, `hash` uses the lane.
  ///
  /// The place is taken first: what the body does before hashing, such as reserving an attempt, is
  /// bounded with it.
  func withPlace<Result: Sendable>(
    of sender: SenderAddress?,
    _ limits: ServiceLimits,
    _ body: (_ lane: Lane) async throws -> Result
  ) async throws -> Result {
    let network = sender?.network
    let isFull = waiting.withLock { waiting in
      let own = network.map { waiting.byNetwork[$0, default: 0] } ?? 0
      guard waiting.total < limits.waitingHashes, own < limits.waitingHashesPerNetwork else {
        return true
      }
      waiting.total += 1
      if let network { waiting.byNetwork[network] = own + 1 }
      return false
    }
    guard !isFull else {
      throw ErrorDictionary(.throttled, "too many sign-ins at once, try again", retryAfter: 2)
    }
    defer {
      waiting.withLock { waiting in
        waiting.total -= 1
        if let network {
          let left = (waiting.byNetwork[network] ?? 1) - 1
          waiting.byNetwork[network] = left > 0 ? left : nil
        }
      }
    }
    return try await body(lane)
  }
}
