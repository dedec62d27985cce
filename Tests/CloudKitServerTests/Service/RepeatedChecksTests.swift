import Testing

@testable import CloudKitServer

/// When a server checks again after a notification.
@Suite("Checks that follow notifications")
struct RepeatedChecksTests {
  @Test("A notification that arrives after the last check began is followed by another check")
  func betweenChecks() {
    var checks = RepeatedChecks()
    var starts = checks.request()
    #expect(starts)
    checks.beginCheck()
    // The check has read, and has not reported yet.
    starts = checks.request()
    #expect(!starts)
    var isOver = checks.finish()
    #expect(!isOver)
    checks.beginCheck()
    isOver = checks.finish()
    #expect(isOver)
    // The next notification starts a task again.
    starts = checks.request()
    #expect(starts)
  }

  @Test("Many notifications during a check are followed by one")
  func manyNotifications() {
    var checks = RepeatedChecks()
    _ = checks.request()
    checks.beginCheck()
    for _ in 0..<100 {
      let starts = checks.request()
      #expect(!starts)
    }
    var isOver = checks.finish()
    #expect(!isOver)
    checks.beginCheck()
    isOver = checks.finish()
    #expect(isOver)
  }

  @Test("Checks that end early start again with the next notification")
  func stopped() {
    var checks = RepeatedChecks()
    _ = checks.request()
    checks.stop()
    let starts = checks.request()
    #expect(starts)
  }
}
