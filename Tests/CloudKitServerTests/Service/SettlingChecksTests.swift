import Testing

@testable import CloudKitServer

/// When a server looks again for events that earlier transactions hold back.
@Suite("Checks for events that are not visible yet")
struct SettlingChecksTests {
  @Test("A notification that arrives after the last check began is followed by another check")
  func betweenChecks() {
    var checks = SettlingChecks()
    var starts = checks.request(hasListener: true)
    #expect(starts)
    checks.beginCheck()
    // The check has read, and has not reported yet.
    starts = checks.request(hasListener: true)
    #expect(!starts)
    var isOver = checks.finish()
    #expect(!isOver)
    checks.beginCheck()
    isOver = checks.finish()
    #expect(isOver)
    // The next notification starts a task again.
    starts = checks.request(hasListener: true)
    #expect(starts)
  }

  @Test("A notification without a listener starts no checks, and keeps none from starting later")
  func withoutListener() {
    var checks = SettlingChecks()
    var starts = checks.request(hasListener: false)
    #expect(!starts)
    starts = checks.request(hasListener: true)
    #expect(starts)
    checks.stop()
    starts = checks.request(hasListener: true)
    #expect(starts)
  }
}
