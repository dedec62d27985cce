import Effects
import Foundation
import Logging
import Synchronization
import Testing

@testable import CloudKitServer

/// A clock that a test advances, which wakes sleeping tasks.
private final class SteppedClock: EffectClock {
  private struct Sleeper {
    var id: Int
    var end: Double
    var wake: CheckedContinuation<Void, any Error>
  }

  private struct State {
    var time = 1_700_000_000.0
    var sleepers: [Sleeper] = []
    var cancelled: Set<Int> = []
    var next = 0
  }

  private let state = Mutex(State())

  var now: Date { Date(timeIntervalSince1970: state.withLock { $0.time }) }
  var uptime: Double { state.withLock { $0.time } }
  var sleepers: Int { state.withLock { $0.sleepers.count } }

  func sleep(seconds: Double) async throws {
    let id = state.withLock { state in
      state.next += 1
      return state.next
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { wake in
        let isCancelled = state.withLock { state in
          guard state.cancelled.remove(id) == nil else { return true }
          state.sleepers.append(Sleeper(id: id, end: state.time + seconds, wake: wake))
          return false
        }
        if isCancelled { wake.resume(throwing: CancellationError()) }
      }
    } onCancel: {
      let sleeper = state.withLock { state -> Sleeper? in
        guard let index = state.sleepers.firstIndex(where: { $0.id == id }) else {
          state.cancelled.insert(id)
          return nil
        }
        return state.sleepers.remove(at: index)
      }
      sleeper?.wake.resume(throwing: CancellationError())
    }
  }

  func advance(seconds: Double) {
    let due = state.withLock { state in
      state.time += seconds
      let time = state.time
      let due = state.sleepers.filter { $0.end <= time }
      state.sleepers.removeAll { $0.end <= time }
      return due
    }
    for sleeper in due { sleeper.wake.resume() }
  }
}

/// A mail server that accepts no mail before the stream ends.
private struct SlowSender: MailSender {
  var opened: AsyncStream<Void>

  func send(_ mail: MailMessage) async throws(MailFailure) {
    for await _ in opened {}
  }
}

@Suite("The mail queue")
struct MailQueueTests {
  private let clock = SteppedClock()
  private let outbox = TestOutbox()

  private func queue(
    waiting: Int = 10,
    notices: Int = 2,
    sender: (any MailSender)? = nil
  ) -> MailQueue {
    MailQueue(
      sender ?? outbox,
      MailQueue.Bounds(waiting: waiting, waitingNotices: notices, lifetime: 3600),
      effects: Effects(
        clock: clock,
        randomness: SeededRandomness(seed: 1),
        tasks: PoolTaskSpawner()
      ),
      logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
    )
  }

  private func mail(_ name: String) -> MailMessage {
    MailMessage(to: "\(name)@example.org", subject: name, text: name, id: name, date: clock.now)
  }

  private func add(_ mails: MailMessage..., to queue: MailQueue) -> Bool { queue.add { mails } }

  /// Advances the clock when the queue sleeps, until the mail is delivered or the queue is done
  /// with it.
  private func advance(_ queue: MailQueue, by seconds: Double) async {
    while clock.sleepers == 0 { await Task.yield() }
    clock.advance(seconds: seconds)
    while clock.sleepers == 0, queue.counts.waiting > 0 || queue.counts == MailQueue.Counts() {
      await Task.yield()
    }
    await queue.finishWork()
  }

  @Test("A temporarily refused mail is sent later; a permanently refused one is not")
  func retries() async {
    let queue = queue()
    outbox.refuse(
      with: MailFailure("451", isTemporary: true, isOfServer: false),
      MailFailure("550", isTemporary: false, isOfServer: false)
    )
    #expect(add(mail("ada"), mail("bob"), to: queue))
    await queue.finishWork()
    #expect(outbox.mails.isEmpty)
    #expect(queue.counts == MailQueue.Counts(waiting: 1, sent: 0, failed: 1))
    await advance(queue, by: 30)
    #expect(outbox.mails.map(\.id) == ["ada"])
    #expect(queue.counts == MailQueue.Counts(waiting: 0, sent: 1, failed: 1))
    await queue.close()
  }

  @Test("While the mail server accepts nothing, mails are queued and look-ups continue")
  func pauses() async {
    let queue = queue()
    outbox.refuse(with: MailFailure("no route", isTemporary: true, isOfServer: true))
    #expect(add(mail("ada"), to: queue))
    await queue.finishWork()
    let isLookedUp = Mutex(false)
    let mail = mail("bob")
    let isTaken = queue.add {
      isLookedUp.withLock { $0 = true }
      return [mail]
    }
    #expect(isTaken)
    await queue.finishWork()
    #expect(isLookedUp.withLock { $0 })
    #expect(outbox.mails.isEmpty)
    await advance(queue, by: 30)
    #expect(Set(outbox.mails.map(\.id)) == ["ada", "bob"])
    await queue.close()
  }

  @Test("A mail queued during a pause, with no other in the queue, is sent after it")
  func duringAPause() async {
    let queue = queue()
    outbox.refuse(with: MailFailure("no route", isTemporary: false, isOfServer: true))
    #expect(add(mail("ada"), to: queue))
    await queue.finishWork()
    #expect(queue.counts == MailQueue.Counts(waiting: 0, sent: 0, failed: 1))
    #expect(queue.add(notice: mail("bob")))
    await queue.finishWork()
    #expect(outbox.mails.isEmpty)
    await advance(queue, by: 30)
    #expect(outbox.mails.map(\.id) == ["bob"])
    await queue.close()
  }

  @Test("A mail whose link has expired is discarded")
  func end() async {
    let queue = queue()
    var late = mail("ada")
    late.validUntil = clock.now + 20
    outbox.refuse(with: MailFailure("451", isTemporary: true, isOfServer: false))
    #expect(add(late, to: queue))
    await queue.finishWork()
    #expect(queue.counts == MailQueue.Counts(waiting: 0, sent: 0, failed: 1))
    await queue.close()
  }

  @Test("A full queue refuses further requests, and has places for notices")
  func full() async {
    let queue = queue(waiting: 3, notices: 1)
    outbox.refuse(with: MailFailure("no route", isTemporary: true, isOfServer: true))
    #expect(add(mail("first"), to: queue))
    await queue.finishWork()
    #expect(add(mail("second"), to: queue))
    await queue.finishWork()
    // The result of the request must not depend on it: it would reveal whether an account exists.
    #expect(add(mail("beyond"), to: queue))
    #expect(add(to: queue))
    await queue.finishWork()
    #expect(queue.counts == MailQueue.Counts(waiting: 2, sent: 0, failed: 1))
    #expect(queue.add(notice: mail("third")))
    #expect(!queue.add(notice: mail("fourth")))
    await queue.close()
    #expect(!add(to: queue))
  }

  @Test("Queued notices take no places of requested mails")
  func fullOfNotices() async {
    let queue = queue(waiting: 3, notices: 1)
    outbox.refuse(with: MailFailure("no route", isTemporary: true, isOfServer: true))
    #expect(queue.add(notice: mail("first")))
    await queue.finishWork()
    #expect(!queue.add(notice: mail("second")))
    #expect(add(mail("third"), to: queue))
    await queue.finishWork()
    #expect(add(mail("fourth"), to: queue))
    await queue.finishWork()
    #expect(queue.counts == MailQueue.Counts(waiting: 3, sent: 0, failed: 0))
    await queue.close()
  }

  @Test("Work runs while a mail is being sent, and has places of its own")
  func slowServer() async {
    let (opened, open) = AsyncStream<Void>.makeStream()
    let (done, finish) = AsyncStream<Void>.makeStream()
    let queue = queue(waiting: 3, notices: 1, sender: SlowSender(opened: opened))
    #expect(queue.add(notice: mail("slow")))
    // The work ends while the mail is still being sent.
    #expect(
      queue.add {
        finish.finish()
        return []
      }
    )
    for await _ in done {}
    #expect(queue.counts.sent == 0)
    // Queued work uses only its own places.
    let (released, release) = AsyncStream<Void>.makeStream()
    let (begun, begin) = AsyncStream<Void>.makeStream()
    #expect(
      queue.add {
        begin.finish()
        for await _ in released {}
        return []
      }
    )
    for await _ in begun {}
    #expect(add(to: queue))
    #expect(add(to: queue))
    #expect(!add(to: queue))
    release.finish()
    open.finish()
    await queue.finishWork()
    #expect(queue.counts == MailQueue.Counts(waiting: 0, sent: 1, failed: 0))
    await queue.close()
  }
}
