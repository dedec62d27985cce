import Effects
import Foundation
import Synchronization

/// The one record of what the mirroring of a store does; logs, events, status and the demo's
/// timeline all read it.
package final class SyncJournal: Sendable {
  private struct State {
    var observers: [Int: @Sendable (SyncEvent) -> Void] = [:]
    var nextObserver = 0
    var latest: [SyncEvent] = []
  }

  /// How many events are kept for who comes late.
  package static let capacity = 500

  private let state = Mutex(State())
  package let storeIdentifier: String
  private let effects: Effects

  package init(storeIdentifier: String, effects: Effects) {
    self.storeIdentifier = storeIdentifier
    self.effects = effects
  }

  /// Notes an event and tells all observers, on the calling thread.
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

  /// Calls the observer with each event until the observation is ended with the number returned.
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

  /// The events from now on.
  package func events() -> AsyncStream<SyncEvent> {
    AsyncStream(bufferingPolicy: .bufferingNewest(Self.capacity)) { continuation in
      let number = observe { continuation.yield($0) }
      continuation.onTermination = { _ in self.endObservation(number) }
    }
  }
}
