import Testing

@testable import CloudKitServer

/// The token buckets that limit a sender's rate.
@Suite("Rates of senders")
struct RequestThrottleTests {
  @Test("An active sender is not evicted, regardless of the number of others")
  func eviction() {
    let throttle = RequestThrottle(limit: 10)
    func isRefused(_ sender: String, at time: Int64) -> Bool {
      throttle.delay(for: sender, rate: 0.001, burst: 1, now: time) != nil
    }
    #expect(!isRefused("busy", at: 0))
    for index in 1...100 {
      let time = Int64(index)
      #expect(!isRefused("sender \(index)", at: time))
      #expect(isRefused("busy", at: time))
    }
  }

  @Test("A full bucket is evicted before one that is not, each by its own rate")
  func idleness() {
    let throttle = RequestThrottle(limit: 2)
    // One token in a minute, and a thousand in a second.
    #expect(throttle.delay(for: "slow", rate: 1.0 / 60, burst: 1, now: 0) == nil)
    #expect(throttle.delay(for: "fast", rate: 1000, burst: 1, now: 10) == nil)
    #expect(throttle.delay(for: "other", rate: 1000, burst: 1, now: 1000) == nil)
    #expect(throttle.delay(for: "slow", rate: 1.0 / 60, burst: 1, now: 1000) != nil)
  }
}
