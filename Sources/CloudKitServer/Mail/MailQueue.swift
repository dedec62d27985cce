import Effects
import Foundation
import Logging
import Synchronization

/// Mails that wait to be sent, one after the other, beside all requests.
///
/// The queue takes work, not only mails: what a request asks for is looked up here, so that the time
/// and the answer of the request do not depend on whether an account exists. It is bounded and kept in
/// memory: a mail that waits when the server stops is not sent, and its person asks again.
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

  private struct Item: Sendable {
    enum Content: Sendable {
      case work(@Sendable () async throws -> [MailMessage])
      case mail(MailMessage)
    }

    var content: Content
    var isNotice = false
    /// Milliseconds since 1970.
    var due: Int64
    var end: Int64
    var attempts = 0
  }

  private struct State {
    var items: [Item] = []
    var pausedUntil: Int64 = 0
    var pauses = 0
    var isClosed = false
    var worker: SpawnedTask?
    var timer: SpawnedTask?
    var sent = 0
    var failed = 0
  }

  /// Seconds before the next attempt, by attempts so far.
  private static let pauses: [Double] = [30, 120, 600, 1800, 3600]
  /// Seconds that a stop waits for the mails that can be sent at once.
  private static let farewell = 5.0

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
    state.withLock { Counts(waiting: $0.items.count, sent: $0.sent, failed: $0.failed) }
  }

  private var now: Int64 { effects.now.wireMilliseconds }

  /// Takes work that makes mails, none among them; false where the queue is full or closed.
  func add(_ work: @escaping @Sendable () async throws -> [MailMessage]) -> Bool {
    add(.work(work), isNotice: false, within: bounds.waiting - bounds.waitingNotices)
  }

  /// Takes a notice; false where the places of notices are full or the queue is closed.
  func add(notice: MailMessage) -> Bool {
    add(.mail(notice), isNotice: true, within: bounds.waitingNotices)
  }

  /// Sends what can be sent at once, within seconds, and drops the rest.
  func close() async {
    let (worker, timer) = state.withLock { state in
      state.isClosed = true
      return (state.worker, state.timer)
    }
    timer?.cancel()
    let deadline = effects.tasks.spawn { [effects] in
      do { try await effects.clock.sleep(seconds: Self.farewell) } catch { return }
      worker?.cancel()
    }
    await finishWork()
    deadline.cancel()
    let left = state.withLock { $0.items.count }
    if left > 0 { logger.warning("mails were not sent before the stop: \(left)") }
  }

  /// Waits until nothing is left that can be done at once.
  func finishWork() async {
    if let worker = state.withLock({ $0.worker }) { await worker.finish() }
  }

  // MARK: Work

  private func add(_ content: Item.Content, isNotice: Bool, within limit: Int) -> Bool {
    let time = now
    let item = Item(
      content: content,
      isNotice: isNotice,
      due: time,
      end: time + Int64(bounds.lifetime * 1000)
    )
    return state.withLock { state in
      guard !state.isClosed, state.items.count(where: { $0.isNotice == isNotice }) < limit else {
        return false
      }
      state.items.append(item)
      startWorker(&state)
      return true
    }
  }

  /// Starts the one worker where none runs and an item is due.
  private func startWorker(_ state: inout State) {
    guard state.worker == nil, dueIndex(state, now) != nil else { return }
    state.timer?.cancel()
    state.timer = nil
    state.worker = effects.tasks.spawn { [self] in
      while let item = next() { await handle(item) }
    }
  }

  private func dueIndex(_ state: State, _ time: Int64) -> Int? {
    state.items.firstIndex { item in
      // Work asks no mail server: it goes on while that one does not answer.
      if case .mail = item.content, state.pausedUntil > time { return false }
      return item.due <= time
    }
  }

  /// The first item that is due; where none is, the worker ends and a timer starts the next one.
  private func next() -> Item? {
    let time = now
    return state.withLock { state in
      if let index = dueIndex(state, time) { return state.items.remove(at: index) }
      state.worker = nil
      guard !state.isClosed, let first = state.items.map(\.due).min() else { return nil }
      let seconds = Double(max(first, state.pausedUntil) - time) / 1000
      state.timer = effects.tasks.spawn { [self] in
        do { try await effects.clock.sleep(seconds: max(seconds, 0.001)) } catch { return }
        self.state.withLock { startWorker(&$0) }
      }
      return nil
    }
  }

  private func handle(_ item: Item) async {
    switch item.content {
    case .work(let work):
      do {
        let mails = try await work()
        let time = now
        state.withLock { state in
          state.items += mails.map { mail in
            let end = mail.validUntil.map { min($0.wireMilliseconds, item.end) } ?? item.end
            return Item(content: .mail(mail), due: time, end: end)
          }
        }
      } catch {
        logger.error("a mail could not be made", metadata: ["error": "\(error)"])
        state.withLock { $0.failed += 1 }
      }
    case .mail(let mail): await send(mail, item)
    }
  }

  private func send(_ mail: MailMessage, _ item: Item) async {
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
