import CloudKitWebServices
import Effects
import Foundation
import Synchronization

/// Brings notifications to the long polls that wait for them.
///
/// A commit wakes its devices directly: nothing here looks again and again.
final class NotificationHub: Sendable {
  private typealias Waiter = CheckedContinuation<PushNotification?, Never>

  private struct Device {
    var waiters: [UInt64: Waiter] = [:]
    /// One for each subscription: a device asks what changed, so the newest says it all.
    var pending: [String: PushNotification] = [:]
    var order: [String] = []
    /// The device has polled since the server started.
    var isKnown = false
  }

  private struct State {
    var devices: [String: Device] = [:]
    var isClosed = false
    var nextWaiter: UInt64 = 0
    /// Waiters whose poll ended before they were registered.
    var cancelled: Set<UInt64> = []
    /// Polls that have begun and not ended.
    var open: Set<UInt64> = []
  }

  private let state = Mutex(State())
  private let effects: Effects

  init(effects: Effects) {
    self.effects = effects
  }

  /// Hands a notification to a waiting poll, or keeps it for the next.
  func post(_ notification: PushNotification, subscription: String, to token: String) {
    let waiter = state.withLock { state -> Waiter? in
      guard !state.isClosed else { return nil }
      var device = state.devices[token] ?? Device()
      defer { state.devices[token] = device }
      // The oldest poll of a device first.
      if let id = device.waiters.keys.min() { return device.waiters.removeValue(forKey: id) }
      if device.pending.updateValue(notification, forKey: subscription) == nil {
        device.order.append(subscription)
      }
      return nil
    }
    waiter?.resume(returning: notification)
  }

  /// True at a device's first poll since the start: what came before may have been lost.
  func isFirstPoll(of token: String) -> Bool {
    state.withLock { state in
      defer { state.devices[token, default: Device()].isKnown = true }
      return !(state.devices[token]?.isKnown ?? false)
    }
  }

  /// The next notification, or nil when none came in time.
  func next(for token: String, timeout: Double) async -> PushNotification? {
    let id = state.withLock { state in
      state.nextWaiter += 1
      state.open.insert(state.nextWaiter)
      return state.nextWaiter
    }
    defer {
      state.withLock { state in
        state.open.remove(id)
        state.cancelled.remove(id)
      }
    }
    return await withTaskGroup(of: Void.self) { group in
      group.addTask { [self] in
        try? await effects.clock.sleep(seconds: timeout)
        end(id, of: token)
      }
      let notification = await wait(id, for: token)
      group.cancelAll()
      return notification
    }
  }

  private func wait(_ id: UInt64, for token: String) async -> PushNotification? {
    await withTaskCancellationHandler {
      await withCheckedContinuation { (waiter: Waiter) in
        let ready = state.withLock { state -> PushNotification?? in
          if state.isClosed || state.cancelled.remove(id) != nil { return .some(nil) }
          var device = state.devices[token] ?? Device()
          defer { state.devices[token] = device }
          guard let subscription = device.order.first else {
            device.waiters[id] = waiter
            return nil
          }
          device.order.removeFirst()
          return .some(device.pending.removeValue(forKey: subscription))
        }
        if let ready { waiter.resume(returning: ready) }
      }
    } onCancel: {
      end(id, of: token)
    }
  }

  /// Ends one poll without a notification, whether it waits already or is about to.
  private func end(_ id: UInt64, of token: String) {
    let waiter = state.withLock { state -> Waiter? in
      if let waiter = state.devices[token]?.waiters.removeValue(forKey: id) { return waiter }
      // Not there: served already, or not registered yet; an open poll must then not begin.
      if state.open.contains(id) { state.cancelled.insert(id) }
      return nil
    }
    waiter?.resume(returning: nil)
  }

  /// Ends every poll; later ones end at once.
  func close() {
    let waiters = state.withLock { state in
      state.isClosed = true
      let waiters = state.devices.values.flatMap(\.waiters.values)
      state.devices.removeAll()
      return waiters
    }
    for waiter in waiters { waiter.resume(returning: nil) }
  }
}
