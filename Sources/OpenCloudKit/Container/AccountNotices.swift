import Effects
import Foundation
import Synchronization

/// Reports changes of containers' accounts: to the sync engines and mirrors of the process, which must
/// not send for the former user, before the call that changed the account returns; and to the app by
/// `CKAccountChanged`.
///
/// The notification is posted on a thread on which no other thread waits, in the order of the changes.
/// An observer of the app with an operation queue makes the posting thread wait for that queue, and that
/// thread may be the one that runs the main queue.
package final class AccountNotices: Sendable {
  package static let shared = AccountNotices()

  /// Receives the container whose account changed, or nil if the change concerns all containers; must
  /// not block.
  package typealias Observer = @Sendable (CKContainer?) -> Void

  private struct State {
    var observers: [Int: Observer] = [:]
    var last = 0
  }

  private let state = Mutex(State())
  private let lane = Effects.live.waitingLane("CKAccountChanged")

  private init() {}

  /// Adds an observer and returns the number that it is removed by.
  @discardableResult
  package func add(_ observer: @escaping Observer) -> Int {
    state.withLock { state in
      state.last += 1
      state.observers[state.last] = observer
      return state.last
    }
  }

  package func remove(_ number: Int) {
    // The observer is released outside of the lock.
    let former = state.withLock { $0.observers.removeValue(forKey: number) }
    _ = former
  }

  func accountChanged(of container: CKContainer?) {
    let observers = state.withLock { $0.observers.sorted { $0.key < $1.key }.map(\.value) }
    for observer in observers { observer(container) }
    lane.async {
      NotificationCenter.default.post(name: .CKAccountChanged, object: container)
    }
  }
}
