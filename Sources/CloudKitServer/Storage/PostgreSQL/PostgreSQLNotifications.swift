import Effects
import Foundation
import Synchronization
import WatershedPostgreSQL

/// Notifications of commits between servers on one PostgreSQL.
///
/// A notification inside the writing transaction would serialize all commits, so it is sent after
/// the commit, once for all commits since the last one. It is lost if its server fails; a slow poll
/// covers that.
final class PostgreSQLNotifications: Sendable {
  private struct State {
    var listener: (@Sendable (StorageEvent) -> Void)?
    var connection: PostgreSQLConnection?
    /// The pool's generation in which the connection was opened.
    var generation = 0
    var watch: DescriptorWatch?
    var poll: SpawnedTask?
    /// The notifications of this server that were not sent yet.
    var unsent: Set<StorageEvent> = []
    var isSending = false
    var settling = RepeatedChecks()
    var isStopped = false
  }

  private let state = Mutex(State())
  private let url: String
  private let channel: String
  private let pool: PostgreSQLPool
  private let effects: Effects
  /// Waits for the server: its lanes keep no thread of the pool while it hangs.
  private let looking: Lane
  private let sending: Lane
  /// Identifies this server's own notifications.
  private let sender: String

  /// The polling interval in seconds, for lost notifications.
  private static let pollInterval = 5.0
  /// The polling intervals in seconds while an open transaction holds back committed events:
  /// doubled while it stays open, since it may be another application's or another database's in
  /// the cluster.
  private static let settlingPauses = (first: 0.005, longest: 1.0)

  init(url: String, channel: String, pool: PostgreSQLPool, effects: Effects) {
    self.url = url
    self.channel = channel
    self.pool = pool
    self.effects = effects
    looking = effects.waitingLane("server polls")
    sending = effects.waitingLane("server notices")
    sender = effects.randomness.bytes(8).hexadecimal
  }

  func listen(_ body: @escaping @Sendable (StorageEvent) -> Void) {
    state.withLock { $0.listener = body }
  }

  /// Connects, and reconnects after a connection loss, here or in the pool; each poll runs `check`.
  func start(_ check: @escaping @Sendable () throws -> Void) {
    connect()
    let poll = effects.tasks.spawn { [weak self, effects, looking] in
      while (try? await effects.clock.sleep(seconds: Self.pollInterval)) != nil {
        guard let self else { return }
        _ = try? await looking.run { self.poll(check) }
      }
    }
    state.withLock { $0.poll = poll }
  }

  func poll(_ check: () throws -> Void) {
    // If the server can't be reached, the next poll tries again.
    try? check()
    let mustConnect = state.withLock { state in
      // A server that hangs, or a former one, closes no connection, and notifies of nothing.
      if state.generation != pool.generation { disconnect(&state) }
      return state.connection == nil
    }
    if mustConnect {
      connect()
      // What a lost connection did not take may have been one of these.
      handle(.directory)
      handle(.containers)
    }
    handle(.events)
  }

  func stop() {
    let poll = state.withLock { state in
      state.isStopped = true
      state.listener = nil
      disconnect(&state)
      return state.poll
    }
    poll?.cancel()
  }

  // MARK: Sending

  /// Notifies this server's listener at once and the other servers soon.
  func notify(_ event: StorageEvent) {
    let mustSend = state.withLock { state in
      state.unsent.insert(event)
      defer { state.isSending = true }
      return !state.isSending && !state.isStopped
    }
    if mustSend { sending.async { [weak self] in self?.send() } }
    handle(event)
  }

  private func send() {
    while true {
      let unsent = state.withLock { state in
        defer { state.unsent.removeAll() }
        if state.unsent.isEmpty { state.isSending = false }
        return state.unsent
      }
      guard !unsent.isEmpty else { return }
      // A lost notification delays other servers until their next poll.
      _ = try? pool.use { connection in
        for event in StorageEvent.allCases where unsent.contains(event) {
          try connection.queue(
            "SELECT pg_notify($1, $2)",
            [.text(channel), .text("\(sender) \(event.rawValue)")]
          )
        }
        try connection.flush()
      }
    }
  }

  // MARK: Receiving

  private func connect() {
    let generation = pool.generation
    guard
      let connection = try? PostgreSQLConnection(
        url: url,
        answerLimit: PostgreSQLPool.answerLimit
      ),
      (try? connection.query("LISTEN \"\(channel)\"")) != nil
    else { return }
    state.withLock { state in
      guard !state.isStopped else { return }
      state.connection = connection
      state.generation = generation
      state.watch = DescriptorWatch(connection.descriptor) { [weak self] in self?.receive() }
    }
  }

  private func disconnect(_ state: inout State) {
    state.watch?.cancel()
    state.watch = nil
    state.connection = nil
  }

  private func receive() {
    let received = state.withLock { state -> Set<StorageEvent> in
      guard let connection = state.connection else { return [] }
      guard let payloads = try? connection.notifications() else {
        disconnect(&state)
        pool.noteLoss(in: state.generation)
        return []
      }
      let parts = payloads.map { $0.split(ascii: " ") }
      return Set(
        parts.filter { $0.count == 2 && $0[0] != sender }
          .compactMap { StorageEvent(rawValue: String($0[1])) }
      )
    }
    for event in StorageEvent.allCases where received.contains(event) { handle(event) }
  }

  private func handle(_ event: StorageEvent) {
    state.withLock { $0.listener }?(event)
    if event == .events { settle() }
  }

  /// Events wait for earlier transactions, whose end causes no notification: poll until they are
  /// visible.
  private func settle() {
    // Without a listener nothing waits for events.
    let isFirst = state.withLock { $0.listener != nil && $0.settling.request() }
    guard isFirst else { return }
    effects.tasks.spawn { [weak self, effects, looking] in
      var hasWaited = false
      var pause = Self.settlingPauses.first
      while let self {
        state.withLock { $0.settling.beginCheck() }
        let isUnsettled = (try? await looking.run { self.isUnsettled() }) ?? false
        if isUnsettled {
          guard (try? await effects.clock.sleep(seconds: pause)) != nil else {
            return state.withLock { $0.settling.stop() }
          }
          hasWaited = true
          pause = min(pause * 2, Self.settlingPauses.longest)
        } else if hasWaited {
          // Events that were committed meanwhile may wait for another transaction: check again.
          state.withLock { $0.listener }?(.events)
          hasWaited = false
          pause = Self.settlingPauses.first
        } else if state.withLock({ $0.settling.finish() }) {
          return
        }
      }
    }
  }

  private func isUnsettled() -> Bool {
    let found = try? pool.use { connection in
      try SQLEvents(session: PostgreSQLSession(connection: connection)).hasUnsettled()
    }
    return found ?? false
  }
}
