import Testing

@testable import CloudKitMirroring

/// The values of a mirror's state, each without a mirror.
@Suite("State of a mirror")
struct MirrorStateTests {
  @Test("A mirror begins with an import and an export, and requested work is taken once")
  func requestedWork() {
    var work = RequestedWork()
    let first = work.take()
    #expect(first == .both)
    #expect(work.isIdle)
    work.begin()
    #expect(work.lacks(.importing))
    work.want(.importing)
    #expect(!work.lacks(.importing))
    #expect(work.lacks(.both))
    _ = work.succeed()
    #expect(!work.isIdle)
    let second = work.take()
    #expect(second == .importing)
    #expect(work.isIdle)
  }

  @Test("The pause before a retry of refused changes doubles up to an hour")
  func parkedRetry() {
    var parked = ParkedRetry()
    var pauses: [Double] = []
    for _ in 0..<8 {
      let isRetry = parked.begin()
      #expect(isRetry)
      #expect(parked.isRunning)
      parked.end(isParked: true, at: 0)
      let next = parked.next ?? 0
      pauses.append(next)
      let early = parked.wantIfDue(at: next - 1)
      #expect(!early)
      let isDue = parked.wantIfDue(at: next)
      #expect(isDue)
    }
    #expect(pauses == [120, 240, 480, 960, 1920, 3600, 3600, 3600])
    parked.end(isParked: false, at: 0)
    #expect(parked.next == nil)
    parked.end(isParked: true, at: 0)
    #expect(parked.next == 60)
  }

  @Test("The end of a former listener does not end the current one")
  func listener() throws {
    var listener = ListenerState()
    #expect(listener.pollTime == -Double.infinity)
    let begun = listener.begin()
    let first = try #require(begun)
    #expect(listener.pollTime == nil)
    let another = listener.begin()
    #expect(another == nil)
    _ = listener.stop(nextPoll: 5)
    #expect(listener.pollTime == 5)
    let begunAgain = listener.begin()
    let second = try #require(begunAgain)
    listener.end(first, nextPoll: 9)
    #expect(listener.pollTime == nil)
    listener.end(second, nextPoll: 10)
    #expect(listener.pollTime == 10)
  }

  @Test("The feed is polled while there is a listener and no subscription")
  func noSubscription() throws {
    var listener = ListenerState()
    _ = listener.begin()
    listener.nextPoll = 30
    listener.nextSubscription = 300
    #expect(listener.pollTime == 30)
    listener.nextSubscription = nil
    #expect(listener.pollTime == nil)
  }

  @Test("A change of the account during a round is checked in that round, and ends the set-up")
  func account() {
    var account = AccountWatch()
    account.beginRound()
    account.noteSetUp()
    #expect(account.uncheckedEpoch == nil)
    account.noteChange()
    #expect(!account.isSetUp)
    #expect(account.uncheckedEpoch == 1)
    account.noteChecked(1)
    #expect(account.uncheckedEpoch == nil)
    #expect(!account.isSetUp)
  }

  @Test("Outdated records are confirmed once the feed was read, until an export")
  func findings() {
    var findings = FeedFindings()
    findings.noteOutdated(["a"])
    #expect(findings.confirmed == [])
    findings.noteReading()
    #expect(findings.confirmed == ["a"])
    findings.noteReading()
    #expect(findings.confirmed == [])
  }

  @Test("Failures are counted for one batch; another batch starts at none")
  func failedBatch() {
    var pace = MirrorPace(ExportBatcher.Limits())
    pace.noteFailure(ofBatch: 7)
    pace.noteFailure(ofBatch: 7)
    #expect(pace.failures(ofBatch: 7) == 2)
    #expect(pace.failures(ofBatch: 8) == 0)
    pace.noteFailure(ofBatch: 8)
    #expect(pace.failures(ofBatch: 7) == 0)
    #expect(pace.failures(ofBatch: 8) == 1)
  }
}
