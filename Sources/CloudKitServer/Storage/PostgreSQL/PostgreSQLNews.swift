import Effects
import Foundation
import Synchronization
import WatershedPostgreSQL

/// Word of commits between servers on one PostgreSQL.
///
/// A notification inside the writing transaction would make all commits wait for each other, so it
/// is sent after the commit, one for as many commits as came meanwhile. It may be lost with its
/// server; a slow poll is behind it.
final class PostgreSQLNews: Sendable {
  private struct State {
    var listener: (@Sendable (StorageNews) -> Void)?
    var connection: PostgreSQLConnection?
    var watch: DescriptorWatch?
    var poll: SpawnedTask?
    /// Told by this server and not sent yet.
    var unsent: Set<StorageNews> = []
    var isSending = false
    var isSettling = false
    var isStopped = false
  }

  private let state = Mutex(State())
  private let url: String
  private let channel: String
  private let pool: PostgreSQLPool
  private let effects: Effects
  /// Tells this server's own notifications from others'.
  private let sender: String

  /// Seconds between looks at what no notification told of.
  private static let pollInterval = 5.0
  /// Seconds between looks at transactions that hold back what is committed already: they double
  /// for one that stays open, of another application or another database of the cluster.
  private static let settlingPauses = (first: 0.005, longest: 1.0)

  init(url: String, channel: String, pool: PostgreSQLPool, effects: Effects) {
    self.url = url
    self.channel = channel
    self.pool = pool
    self.effects = effects
    sender = effects.randomness.bytes(8).hexadecimal
  }

  func listen(_ body: @escaping @Sendable (StorageNews) -> Void) {
    state.withLock { $0.listener = body }
  }

  /// Connects now, and again whenever the connection was lost; `check` runs with every poll.
  func start(_ check: @escaping @Sendable () throws -> Void) {
    connect()
    let poll = effects.tasks.spawn { [weak self, effects] in
      while (try? await effects.clock.sleep(seconds: Self.pollInterval)) != nil {
        guard let self else { return }
        // A server that cannot be reached is looked for again the next time.
        try? check()
        if state.withLock({ $0.connection == nil }) {
          connect()
          hear(.directory)
        }
        hear(.events)
      }
    }
    state.withLock { $0.poll = poll }
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

  // MARK: Telling

  /// Tells this server's listener at once and the others' soon.
  func tell(_ news: StorageNews) {
    let mustSend = state.withLock { state in
      state.unsent.insert(news)
      defer { state.isSending = true }
      return !state.isSending && !state.isStopped
    }
    if mustSend { effects.tasks.spawn { [weak self] in self?.send() } }
    hear(news)
  }

  private func send() {
    while true {
      let unsent = state.withLock { state in
        defer { state.unsent.removeAll() }
        if state.unsent.isEmpty { state.isSending = false }
        return state.unsent
      }
      guard !unsent.isEmpty else { return }
      // Lost word costs the others a poll's wait.
      _ = try? pool.use { connection in
        for news in StorageNews.allCases where unsent.contains(news) {
          try connection.queue(
            "SELECT pg_notify($1, $2)",
            [.text(channel), .text("\(sender) \(news.rawValue)")]
          )
        }
        try connection.flush()
      }
    }
  }

  // MARK: Hearing

  private func connect() {
    guard let connection = try? PostgreSQLConnection(url: url),
      (try? connection.execute("LISTEN \"\(channel)\"")) != nil
    else { return }
    state.withLock { state in
      guard !state.isStopped else { return }
      state.connection = connection
      state.watch = DescriptorWatch(connection.descriptor) { [weak self] in self?.receive() }
    }
  }

  private func disconnect(_ state: inout State) {
    state.watch?.cancel()
    state.watch = nil
    state.connection = nil
  }

  private func receive() {
    let heard = state.withLock { state -> Set<StorageNews> in
      guard let connection = state.connection else { return [] }
      guard let payloads = try? connection.notifications() else {
        disconnect(&state)
        return []
      }
      let parts = payloads.map { $0.split(separator: " ") }
      return Set(
        parts.filter { $0.count == 2 && $0[0] != sender }
          .compactMap { StorageNews(rawValue: String($0[1])) }
      )
    }
    for news in StorageNews.allCases where heard.contains(news) { hear(news) }
  }

  private func hear(_ news: StorageNews) {
    state.withLock { $0.listener }?(news)
    if news == .events { settle() }
  }

  /// Events wait for transactions that began before theirs and may tell nobody when they end.
  private func settle() {
    let isFirst = state.withLock { state in
      defer { state.isSettling = true }
      return !state.isSettling && state.listener != nil
    }
    guard isFirst else { return }
    effects.tasks.spawn { [weak self, effects] in
      var hasWaited = false
      var pause = Self.settlingPauses.first
      while let self, isUnsettled(), (try? await effects.clock.sleep(seconds: pause)) != nil {
        hasWaited = true
        pause = min(pause * 2, Self.settlingPauses.longest)
      }
      guard let self else { return }
      state.withLock { $0.isSettling = false }
      guard hasWaited else { return }
      // What came meanwhile may wait for yet another transaction.
      hear(.events)
    }
  }

  private func isUnsettled() -> Bool {
    let found = try? pool.use { connection in
      try SQLEvents(session: PostgreSQLSession(connection: connection)).hasUnsettled()
    }
    return found ?? false
  }
}
