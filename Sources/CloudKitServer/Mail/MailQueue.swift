import CloudKitWebServices
import Effects
import Foundation
import Logging
import Synchronization

/// A queue of mails, sent one at a time, independently of requests.
///
/// The queue accepts work, not only mails: rows that a request asks for are looked up here, so that
/// the time and the reply of the request do not depend on whether an account exists. Work has a
/// task and places of its own: neither a slow mail server nor queued mails delay or refuse it. The
/// queue is limited and in memory: a mail that is queued when the server stops is not sent, and its
/// user requests it again.
final class MailQueue: Sendable {
  /// The limits of the queue.
  struct Bounds: Sendable {
    /// The most mails in the queue.
    var waiting: Int
    /// The places of the queue that are reserved for notices; notices and other mails use only their own places.
    var waitingNotices: Int
    /// Seconds after which a mail that no server accepts is discarded.
    var lifetime: Double
  }

  /// The counts on the metrics page.
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
    /// Queued work, oldest first.
    var work: [Work] = []
    var items: [Item] = []
    var pausedUntil: Int64 = 0
    var pauses = 0
    /// Whether nothing more is accepted.
    var isClosed = false
    /// Whether nothing more is started.
    var isOver = false
    var maker: SpawnedTask?
    var worker: SpawnedTask?
    var timer: SpawnedTask?
    var sent = 0
    var failed = 0
  }

  /// Seconds until the next attempt, by the number of attempts so far.
  private static let pauses: [Double] = [30, 120, 600, 1800, 3600]
  /// Seconds that a stop waits for the mails that can be sent.
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

  /// Queues work that creates mails, or none; returns false if too much work is queued or the queue
  /// is closed.
  func add(_ work: @escaping Work) -> Bool {
    state.withLock { state in
      guard !state.isClosed, state.work.count < waitingRequests else { return false }
      state.work.append(work)
      startMaker(&state)
      return true
    }
  }

  /// Queues a notice; returns false if the places of notices are full or the queue is closed.
  func add(notice: MailMessage) -> Bool {
    let time = now
    return state.withLock { state in
      guard !state.isClosed else { return false }
      return add(notice, isNotice: true, time, &state)
    }
  }

  /// Sends the mails that can be sent within seconds, and discards the rest.
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
    if left > 0 {
      logger.warning("mails were not sent before the shutdown", metadata: ["count": "\(left)"])
    }
  }

  /// Waits until there is nothing left that can be done without a pause.
  func finishWork() async {
    while let task = state.withLock({ $0.maker ?? $0.worker }) { await task.finish() }
  }

  // MARK: Work

  /// The places of work, and of mails that are no notices.
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

  /// Runs work; mails beyond the places of mails are not sent.
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
      if left > 0 {
        logger.error("mails were not sent: the queue is full", metadata: ["count": "\(left)"])
      }
    } catch {
      logger.error("a mail could not be composed", metadata: ["error": "\(error)"])
      state.withLock { $0.failed += 1 }
    }
  }

  // MARK: Mails

  /// Queues a mail if its class has a place left.
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

  /// Starts the one task that sends mails, unless it runs: now, or when the first mail is due.
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

  /// The first item that is due; if there is none, the task ends and a timer starts the next one.
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
        isKept
          ? "a mail was not sent and is retried" : "a mail was discarded after its last attempt",
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
