import Effects
import Foundation
import Logging
import Synchronization

/// Mails that wait to be sent, one after the other, beside all requests.
///
/// The queue takes work, not only mails: what a request asks for is looked up here, so that the time
/// and the answer of the request do not depend on whether an account exists. Work has a task and places
/// of its own: neither a slow mail server nor mails that wait hold it up or have it refused. All is
/// bounded and kept in memory: a mail that waits when the server stops is not sent, and its person asks
/// again.
final class MailQueue: Sendable {
  /// How long and how much.
  struct Bounds: Sendable {
    /// Mails that may wait.
    var waiting: Int
    /// Of these, notices, which take no place of other mails and leave theirs to none.
    var waitingNotices: Int
    /// Seconds after which a mail that no server takes is given up.
    var lifetime: Double
  }

  /// What the figures on the page of metrics are made of.
  struct Counts: Hashable, Sendable {
    var waiting = 0
    var sent = 0
    var failed = 0
  }

  typealias Work = @Sendable () async throws -> [MailMessage]

  private struct Item: Sendable {
    var mail: MailMessage
    var isNotice = false
    /// Milliseconds since 1970.
    var due: Int64
    var end: Int64
    var attempts = 0
  }

  private struct State {
    /// Work that waits, the oldest first.
    var work: [Work] = []
    var items: [Item] = []
    var pausedUntil: Int64 = 0
    var pauses = 0
    /// Nothing more is taken.
    var isClosed = false
    /// Nothing more is begun.
    var isOver = false
    var maker: SpawnedTask?
    var worker: SpawnedTask?
    var timer: SpawnedTask?
    var sent = 0
    var failed = 0
  }

  /// Seconds before the next attempt, by attempts so far.
  private static let pauses: [Double] = [30, 120, 600, 1800, 3600]
  /// Seconds that a stop waits for the mails that can be sent at once.
  private static let stopTimeout = 5.0

  private let sender: any MailSender
  private let bounds: Bounds
  private let effects: Effects
  private let logger: Logger
  private let state = Mutex(State())

  init(_ sender: any MailSender, _ bounds: Bounds, effects: Effects, logger: Logger) {
    self.sender = sender
    self.bounds = bounds
    self.effects = effects
    self.logger = logger
  }

  var counts: Counts {
    state.withLock { state in
      Counts(
        waiting: state.work.count + state.items.count,
        sent: state.sent,
        failed: state.failed
      )
    }
  }

  private var now: Int64 { effects.now.wireMilliseconds }

  /// Takes work that makes mails, none among them; false where too much work waits or the queue is
  /// closed.
  func add(_ work: @escaping Work) -> Bool {
    state.withLock { state in
      guard !state.isClosed, state.work.count < waitingRequests else { return false }
      state.work.append(work)
      startMaker(&state)
      return true
    }
  }

  /// Takes a notice; false where the places of notices are full or the queue is closed.
  func add(notice: MailMessage) -> Bool {
    let time = now
    return state.withLock { state in
      guard !state.isClosed else { return false }
      return add(notice, isNotice: true, time, &state)
    }
  }

  /// Sends what can be sent at once, within seconds, and drops the rest.
  func close() async {
    let timer = state.withLock { state in
      state.isClosed = true
      return state.timer
    }
    timer?.cancel()
    let deadline = effects.tasks.spawn { [self] in
      do { try await effects.clock.sleep(seconds: Self.stopTimeout) } catch { return }
      let running = self.state.withLock { state in
        state.isOver = true
        return [state.maker, state.worker]
      }
      for task in running { task?.cancel() }
    }
    await finishWork()
    deadline.cancel()
    let left = counts.waiting
    if left > 0 { logger.warning("mails were not sent before the stop: \(left)") }
  }

  /// Waits until nothing is left that can be done at once.
  func finishWork() async {
    while let task = state.withLock({ $0.maker ?? $0.worker }) { await task.finish() }
  }

  // MARK: Work

  /// Places of work, and of mails that are no notices.
  private var waitingRequests: Int { bounds.waiting - bounds.waitingNotices }

  private func startMaker(_ state: inout State) {
    guard state.maker == nil else { return }
    state.maker = effects.tasks.spawn { [self] in
      while let work = nextWork() { await make(work) }
    }
  }

  private func nextWork() -> Work? {
    state.withLock { state in
      if !state.isOver, !state.work.isEmpty { return state.work.removeFirst() }
      state.maker = nil
      return nil
    }
  }

  /// Does work; the mails beyond the places of mails are not sent.
  private func make(_ work: Work) async {
    do {
      let mails = try await work()
      let time = now
      let left = state.withLock { state in
        var left = 0
        for mail in mails where !add(mail, isNotice: false, time, &state) { left += 1 }
        state.failed += left
        return left
      }
      if left > 0 { logger.error("mails were not sent, too many wait: \(left)") }
    } catch {
      logger.error("a mail could not be made", metadata: ["error": "\(error)"])
      state.withLock { $0.failed += 1 }
    }
  }

  // MARK: Mails

  /// Takes a mail where its class has a place left.
  private func add(
    _ mail: MailMessage,
    isNotice: Bool,
    _ time: Int64,
    _ state: inout State
  ) -> Bool {
    let places = isNotice ? bounds.waitingNotices : waitingRequests
    guard state.items.count(where: { $0.isNotice == isNotice }) < places else { return false }
    let last = time + Int64(bounds.lifetime * 1000)
    let end = mail.validUntil.map { min($0.wireMilliseconds, last) } ?? last
    state.items.append(Item(mail: mail, isNotice: isNotice, due: time, end: end))
    startWorker(&state)
    return true
  }

  /// Starts the one worker of mails where none runs: now, or when the first mail is due.
  private func startWorker(_ state: inout State) {
    guard state.worker == nil else { return }
    let time = now
    guard dueIndex(state, time) != nil else { return startTimer(&state, time) }
    state.timer?.cancel()
    state.timer = nil
    state.worker = effects.tasks.spawn { [self] in
      while let item = next() { await send(item) }
    }
  }

  private func dueIndex(_ state: State, _ time: Int64) -> Int? {
    state.pausedUntil > time ? nil : state.items.firstIndex { $0.due <= time }
  }

  /// The first item that is due; where none is, the worker ends and a timer starts the next one.
  private func next() -> Item? {
    let time = now
    return state.withLock { state in
      if !state.isOver, let index = dueIndex(state, time) { return state.items.remove(at: index) }
      state.worker = nil
      startTimer(&state, time)
      return nil
    }
  }

  private func startTimer(_ state: inout State, _ time: Int64) {
    state.timer?.cancel()
    state.timer = nil
    guard !state.isClosed, let first = state.items.map(\.due).min() else { return }
    let seconds = Double(max(first, state.pausedUntil) - time) / 1000
    state.timer = effects.tasks.spawn { [self] in
      do { try await effects.clock.sleep(seconds: max(seconds, 0.001)) } catch { return }
      self.state.withLock { startWorker(&$0) }
    }
  }

  private func send(_ item: Item) async {
    let mail = item.mail
    do throws(MailFailure) {
      try await sender.send(mail)
      state.withLock { state in
        state.sent += 1
        state.pauses = 0
      }
    } catch {
      let time = now
      var item = item
      let pause = Self.pauses[min(item.attempts, Self.pauses.count - 1)]
      item.attempts += 1
      item.due = time + Int64(pause * 1000)
      let isKept = error.isTemporary && item.due < item.end
      logger.error(
        isKept ? "a mail was not sent and waits" : "a mail was not sent and is given up",
        metadata: ["mail": "\(mail.id)", "reason": "\(error.reason)"]
      )
      state.withLock { [item] state in
        if error.isOfServer {
          let wait = Self.pauses[min(state.pauses, Self.pauses.count - 1)]
          state.pausedUntil = time + Int64(wait * 1000)
          state.pauses += 1
        }
        if isKept { state.items.append(item) } else { state.failed += 1 }
      }
    }
  }
}
