import Foundation
import Synchronization

/// The threads that wait for a lane or for the main queue.
///
/// The order of lanes is child before parent: a thread that has the lane of a child context may wait
/// for the lane of its parent. An app breaks that order when it waits for a child's lane on the main
/// thread, or in a block of the parent. If the child's block needs the parent at that moment, both
/// threads would wait for ever.
///
/// Each thread is registered while it waits. The thread that completes a cycle of waits finds it, by
/// following lane, owner, and the lane for which the owner waits. Then the thread whose wait follows
/// the order runs first: it enters the lane of the thread that is waiting against the order, or the
/// main thread runs its block in the middle of its own wait.
///
/// Two contexts of which neither is above the other have no order. Where each one's block waits for the
/// other, the thread that completes the cycle runs first. The owner of the lane that it enters is
/// blocked in its own call: its block is interrupted there and nowhere else.
///
/// A thread of a cycle cannot proceed, so what was found stays true until one of them is granted its
/// goal.
final class LaneWaits: Sendable {
  static let shared = LaneWaits()

  /// The lane or block that a thread waits for.
  enum Goal {
    case lane(SerialLane)
    /// The block that the main queue has to run.
    case main(MainQueueCall)
  }

  /// How a cycle is resolved for one of its threads.
  enum Grant {
    /// The thread enters the lane although another one owns it.
    case entry
    /// The main thread runs a call for the main queue before it waits on.
    case call(MainQueueCall)
  }

  struct Wait {
    let goal: Goal
    /// Whether a child context's work waits for its parent.
    let isForParent: Bool
    /// Whether the thread is running work of the main queue.
    let isOnMainQueue: Bool
    fileprivate(set) var grant: Grant?
  }

  /// The next step of the thread that completed a cycle.
  struct Resolution {
    /// Whether the grant is the calling thread's own.
    var isOwn = false
    /// The lane on whose condition the granted thread waits.
    var lane: SerialLane?
    /// The lanes of a cycle without an order.
    fileprivate var unordered: Set<String> = []
  }

  private let waits = Mutex<[ThreadKey: Wait]>([:])
  /// The cycles without an order that have been reported.
  private let reported = Mutex<Set<Set<String>>>([])

  private static let reportLimit = 16

  /// Registers the calling thread; nil where its wait completes no cycle.
  func begin(_ wait: Wait) -> Resolution? {
    let thread = ThreadKey.current
    let resolution = waits.withLock { waits -> Resolution? in
      waits[thread] = wait
      guard let cycle = Self.cycle(from: thread, waits) else { return nil }
      return Self.grant(in: cycle, &waits, caller: thread)
    }
    if let lanes = resolution?.unordered, !lanes.isEmpty { report(lanes) }
    return resolution
  }

  /// Reports contexts that wait for each other, once: with Core Data it is a deadlock.
  private func report(_ lanes: Set<String>) {
    let isNew = reported.withLock { reported in
      reported.count < Self.reportLimit && reported.insert(lanes).inserted
    }
    guard isNew else { return }
    let names = lanes.sorted().map { "'\($0)'" }.joined(separator: " and ")
    StandardError.print(
      """
      CoreData: warning: the contexts \(names) wait for each other in performAndWait(_:). A block of \
      one runs while a block of the other one waits. Use perform(_:) instead.
      """
    )
  }

  /// Ends the calling thread's registration, and returns what it was granted.
  func end() -> Grant? {
    waits.withLock { $0.removeValue(forKey: .current)?.grant }
  }

  /// The threads of the cycle that a thread is in, each waiting for what the next one has.
  private static func cycle(from first: ThreadKey, _ waits: [ThreadKey: Wait]) -> [ThreadKey]? {
    var cycle = [first]
    while let last = cycle.last, let wait = waits[last], wait.grant == nil {
      let next: ThreadKey?
      switch wait.goal {
      case .lane(let lane): next = lane.ownerKey
      case .main(let call):
        next = call.hasEnded ? nil : waits.first { $0.value.isOnMainQueue }?.key
      }
      guard let next else { return nil }
      if next == first { return cycle }
      guard !cycle.contains(next) else { return nil }
      cycle.append(next)
    }
    return nil
  }

  private static func grant(
    in cycle: [ThreadKey],
    _ waits: inout [ThreadKey: Wait],
    caller: ThreadKey
  ) -> Resolution? {
    let pairs = zip(cycle, cycle.dropFirst() + cycle.prefix(1))
    for (waiting, owner) in pairs {
      guard let wait = waits[waiting], let held = waits[owner], !held.isForParent else { continue }
      switch wait.goal {
      case .main(let call) where !call.isTaken:
        guard case .lane(let lane) = held.goal else { continue }
        waits[owner]?.grant = .call(call)
        return Resolution(isOwn: owner == caller, lane: lane)
      case .lane(let lane) where wait.isForParent:
        waits[waiting]?.grant = .entry
        return Resolution(isOwn: waiting == caller, lane: lane)
      case .main, .lane: continue
      }
    }
    // The owner waits for a block that the main thread is running: what the block needs of the
    // owner's lane, it may use.
    for (waiting, owner) in pairs {
      guard case .lane(let lane)? = waits[waiting]?.goal,
        case .main(let call)? = waits[owner]?.goal,
        call.isTaken
      else { continue }
      waits[waiting]?.grant = .entry
      return Resolution(isOwn: waiting == caller, lane: lane)
    }
    // No wait has precedence; the first one is the caller's.
    for waiting in cycle {
      guard case .lane(let lane)? = waits[waiting]?.goal else { continue }
      waits[waiting]?.grant = .entry
      let labels = cycle.compactMap { thread -> String? in
        guard case .lane(let lane)? = waits[thread]?.goal else { return nil }
        return lane.label
      }
      return Resolution(isOwn: waiting == caller, lane: lane, unordered: Set(labels))
    }
    return nil
  }
}
