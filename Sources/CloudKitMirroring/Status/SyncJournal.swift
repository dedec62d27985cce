import Effects
import Foundation
import Synchronization

/// The record of all actions of a store's mirroring; logs, events, status and the demo's timeline
/// read it.
package final class SyncJournal: Sendable {
  private struct State {
    var observers: [Int: @Sendable (SyncEvent) -> Void] = [:]
    var nextObserver = 0
    var latest: [SyncEvent] = []
  }

  /// The number of events that are kept for observers added later.
  package static let capacity = 500

  private let state = Mutex(State())
  package let storeIdentifier: String
  private let effects: Effects

  package init(storeIdentifier: String, effects: Effects) {
    self.storeIdentifier = storeIdentifier
    self.effects = effects
  }

  /// Records an event and notifies all observers, on the calling thread.
  package func note(
    _ phase: SyncEvent.Phase,
    _ step: SyncEvent.Step,
    cause: String,
    effect: String,
    _ details: (inout SyncEvent) -> Void = { _ in }
  ) {
    var event = SyncEvent(
      storeIdentifier: storeIdentifier,
      phase: phase,
      step: step,
      cause: cause,
      effect: effect,
      moment: effects.now
    )
    details(&event)
    if event.recordNames.count > SyncEvent.nameLimit {
      event.recordNames = Array(event.recordNames.prefix(SyncEvent.nameLimit))
    }
    let observers = state.withLock { state in
      state.latest.append(event)
      if state.latest.count > Self.capacity {
        state.latest.removeFirst(state.latest.count - Self.capacity)
      }
      return state.observers.sorted { $0.key < $1.key }.map(\.value)
    }
    for observer in observers { observer(event) }
  }

  /// The last events, oldest first.
  package var latest: [SyncEvent] { state.withLock { $0.latest } }

  /// Calls the observer with each event until the observation is removed by the returned number.
  @discardableResult
  package func observe(_ observer: @escaping @Sendable (SyncEvent) -> Void) -> Int {
    state.withLock { state in
      state.nextObserver += 1
      state.observers[state.nextObserver] = observer
      return state.nextObserver
    }
  }

  package func endObservation(_ number: Int) {
    state.withLock { $0.observers[number] = nil }
  }

  /// The events from this call on.
  package func events() -> AsyncStream<SyncEvent> {
    AsyncStream(bufferingPolicy: .bufferingNewest(Self.capacity)) { continuation in
      let number = observe { continuation.yield($0) }
      continuation.onTermination = { _ in self.endObservation(number) }
    }
  }
}
