import OpenCloudKit
import Testing

@Suite("SyncSchedule")
struct SyncScheduleTests {
  @Test("The schedule rests until work is requested, and fetches before it sends")
  func order() {
    var schedule = SyncSchedule()
    #expect(schedule.step(at: 0) == .rest)
    schedule.request(.send)
    schedule.request(.fetch)
    #expect(schedule.step(at: 0) == .run(.fetch))
    schedule.begin(.fetch)
    #expect(schedule.step(at: 0) == .run(.send))
    schedule.begin(.send)
    #expect(schedule.step(at: 0) == .rest)
  }

  @Test("Work that is requested while it runs is run again")
  func again() {
    var schedule = SyncSchedule()
    schedule.request(.fetch)
    schedule.begin(.fetch)
    schedule.request(.fetch)
    schedule.succeed()
    #expect(schedule.step(at: 0) == .run(.fetch))
  }

  @Test("A transient failure is retried after the service's delay")
  func retryAfter() {
    var schedule = SyncSchedule()
    schedule.request(.send)
    schedule.begin(.send)
    let error = CKError(.requestRateLimited, userInfo: [CKErrorRetryAfterKey: 30.0])
    schedule.fail(.send, error, at: 100, jitter: 0)
    #expect(schedule.step(at: 100) == .wait(30))
    #expect(schedule.step(at: 130) == .run(.send))
  }

  @Test("The longest delay of any item in a batch is used")
  func retryAfterOfItems() {
    var schedule = SyncSchedule()
    schedule.request(.send)
    schedule.begin(.send)
    let items = [1: 20.0, 2: 45.0].mapValues { seconds in
      CKError(.zoneBusy, userInfo: [CKErrorRetryAfterKey: seconds])
    }
    let error = CKError.partialFailure(
      Dictionary(uniqueKeysWithValues: items.map { (AnyHashable($0), $1 as any Error) })
    )
    schedule.fail(.send, error, at: 0, jitter: 0)
    schedule.request(.send)
    #expect(schedule.step(at: 0) == .wait(45))
  }

  @Test("A scheduled fetch runs at its time, or with an earlier fetch")
  func dueFetch() {
    var schedule = SyncSchedule()
    schedule.requestFetch(at: 60)
    schedule.requestFetch(at: 90)
    #expect(schedule.step(at: 10) == .wait(50))
    #expect(schedule.step(at: 60) == .run(.fetch))
    schedule.begin(.fetch)
    #expect(schedule.step(at: 60) == .rest)
  }

  @Test("A fetch that fails each time does not keep changes from being sent")
  func failingFetch() {
    var schedule = SyncSchedule()
    schedule.request(.send)
    schedule.request(.fetch)
    var steps: [SyncSchedule.Step] = []
    for time in stride(from: 0.0, to: 1_600, by: 400) {
      let step = schedule.step(at: time)
      steps.append(step)
      guard case .run(let work) = step else { break }
      schedule.begin(work)
      if work == .fetch {
        schedule.fail(.fetch, CKError(.zoneBusy), at: time, jitter: 1)
      } else {
        schedule.succeed()
      }
    }
    #expect(steps == [.run(.fetch), .run(.send), .run(.fetch), .run(.fetch)])
  }

  @Test("After a fetch that did not reach the service, the next one still precedes the send")
  func unreachable() {
    var schedule = SyncSchedule()
    schedule.request(.send)
    schedule.request(.fetch)
    schedule.begin(.fetch)
    schedule.fail(.fetch, CKError(.networkUnavailable), at: 0, jitter: 1)
    #expect(schedule.step(at: 400) == .run(.fetch))
  }

  @Test(
    "Cancelled work waits for the next request, as requested work does that was cancelled with it"
  )
  func cancelled() {
    var schedule = SyncSchedule()
    schedule.request(.send)
    schedule.request(.fetch)
    schedule.begin(.fetch)
    schedule.cancel()
    schedule.fail(.fetch, CKError(.operationCancelled), hasMore: true, at: 0, jitter: 0)
    #expect(schedule.step(at: 1_000) == .rest)
    schedule.request(.send)
    #expect(schedule.step(at: 0) == .run(.fetch))
    schedule.begin(.fetch)
    schedule.succeed()
    #expect(schedule.step(at: 0) == .run(.send))
    // A transport's own cancellation is an error like others.
    schedule.begin(.send)
    schedule.fail(.send, CKError(.operationCancelled), at: 0, jitter: 1)
    #expect(schedule.step(at: 1_000) == .run(.send))
  }

  @Test("Consecutive failures have growing delays, up to five minutes")
  func growing() {
    var schedule = SyncSchedule()
    var waits: [Double] = []
    for _ in 0..<20 {
      schedule.fail(.fetch, CKError(.networkUnavailable), at: 0, jitter: 1)
      guard case .wait(let seconds) = schedule.step(at: 0) else { break }
      waits.append(seconds)
    }
    #expect(waits.count == 20)
    #expect(waits == waits.sorted())
    #expect(waits.first == 0.5)
    #expect(waits.last == 300)
    schedule.succeed()
    schedule.fail(.fetch, CKError(.networkUnavailable), at: 0, jitter: 1)
    #expect(schedule.step(at: 0) == .wait(0.5))
  }

  @Test("An error that the delegate has to handle is not retried")
  func refused() {
    var schedule = SyncSchedule()
    schedule.request(.send)
    schedule.begin(.send)
    schedule.fail(.send, CKError(.partialFailure), at: 0, jitter: 0)
    #expect(schedule.step(at: 1_000) == .rest)
  }

  @Test("Without a user the schedule retries every five minutes, and at once after a sign-in")
  func withoutUser() {
    var schedule = SyncSchedule()
    schedule.request(.fetch)
    schedule.begin(.fetch)
    schedule.fail(.fetch, CKError(.notAuthenticated), at: 0, jitter: 0)
    schedule.request(.send)
    #expect(schedule.step(at: 0) == .wait(300))
    #expect(schedule.step(at: 300) == .run(.fetch))
    schedule.wake()
    #expect(schedule.step(at: 0) == .run(.fetch))
  }

  @Test("A send that is retried stays due when operations are cancelled: a notification is enough")
  func cancelledRetry() {
    var schedule = SyncSchedule()
    schedule.request(.send)
    schedule.begin(.send)
    schedule.fail(.send, CKError(.networkUnavailable), at: 0, jitter: 1)
    schedule.cancel()
    #expect(schedule.step(at: 1_000) == .rest)
    schedule.request(.fetch)
    #expect(schedule.step(at: 1_000) == .run(.fetch))
    schedule.begin(.fetch)
    schedule.succeed()
    #expect(schedule.step(at: 1_000) == .run(.send))
  }

  @Test("Planned work that is cancelled while it runs is planned for later")
  func cancelledPlan() {
    var schedule = SyncSchedule()
    schedule.requestSend(at: 30)
    schedule.request(.fetch)
    schedule.begin(.send)
    // The fetch is cancelled too, and continues with the planned send.
    schedule.cancel()
    schedule.fail(.send, CKError(.operationCancelled), at: 40, jitter: 0)
    #expect(schedule.step(at: 40) == .wait(300))
    #expect(schedule.step(at: 340) == .run(.send))
    schedule.begin(.send)
    schedule.succeed()
    #expect(schedule.step(at: 340) == .run(.fetch))
    schedule.requestFetch(at: 900)
    schedule.begin(.fetch)
    schedule.cancel()
    schedule.fail(.fetch, CKError(.operationCancelled), at: 400, jitter: 0)
    #expect(schedule.step(at: 400) == .wait(500))
  }

  @Test("Sends that succeed between failing fetches do not shorten the pauses of the fetches")
  func pausesOfEachKind() {
    var schedule = SyncSchedule()
    var time = 0.0
    var fetches = 0
    var sends = 0
    schedule.request(.fetch)
    while fetches < 12 {
      schedule.request(.send)
      switch schedule.step(at: time) {
      case .rest: return
      case .wait(let seconds): time += seconds
      case .run(.fetch):
        schedule.begin(.fetch)
        schedule.fail(.fetch, CKError(.zoneBusy), at: time, jitter: 1)
        fetches += 1
      case .run(.send):
        schedule.begin(.send)
        schedule.succeed()
        sends += 1
        // The app edits each second.
        time += 1
      }
    }
    #expect(fetches == 12)
    #expect(sends > 500)
    #expect(time > 600)
  }

  @Test(
    "The pause that a service asks for at a fetch does not delay sends, unless it concerns all requests"
  )
  func pauseOfFetch() {
    let busy = CKError(.zoneBusy, userInfo: [CKErrorRetryAfterKey: 3_600.0])
    var schedule = SyncSchedule()
    schedule.fail(.fetch, .partialFailure(["zone": busy]), hasMore: true, at: 0, jitter: 0)
    schedule.request(.send)
    #expect(schedule.step(at: 10) == .run(.send))
    let limited = CKError(.requestRateLimited, userInfo: [CKErrorRetryAfterKey: 60.0])
    schedule.fail(.fetch, limited, at: 10, jitter: 0)
    #expect(schedule.step(at: 10) == .wait(60))
    #expect(schedule.step(at: 70) == .run(.send))
  }

  @Test("A fetch that reaches the service ends the pause of sends that did not reach it")
  func reachable() {
    var schedule = SyncSchedule()
    for _ in 0..<12 { schedule.fail(.send, CKError(.networkUnavailable), at: 0, jitter: 1) }
    #expect(schedule.step(at: 0) == .wait(300))
    schedule.begin(.fetch)
    schedule.succeed()
    #expect(schedule.step(at: 0) == .run(.send))
  }
}
