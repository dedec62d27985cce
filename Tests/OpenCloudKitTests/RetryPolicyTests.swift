import CloudKitWebServices
import Foundation
import OpenCloudKit
import Testing

@Suite("Retries")
struct RetryPolicyTests {
  private let policy = RetryPolicy(attempts: 4, firstDelay: 1, longestDelay: 5)

  @Test("Retry delays double up to the longest, with a random upper half")
  func delays() {
    #expect(policy.delay(afterAttempt: 1, jitter: 0) == 0.5)
    #expect(policy.delay(afterAttempt: 1, jitter: 1) == 1)
    #expect(policy.delay(afterAttempt: 2, jitter: 1) == 2)
    #expect(policy.delay(afterAttempt: 3, jitter: 1) == 4)
    #expect(policy.delay(afterAttempt: 4, jitter: 1) == 5)
    #expect(policy.delay(afterAttempt: .max, jitter: 1) == 5)
  }

  @Test("Only transient errors are retried, up to the limit of attempts")
  func decisions() {
    let busy = CKError(.serviceUnavailable, "busy")
    #expect(policy.decision(afterAttempt: 1, error: busy, jitter: 1) == .retry(after: 1))
    #expect(policy.decision(afterAttempt: 3, error: busy, jitter: 1) == .retry(after: 4))
    #expect(policy.decision(afterAttempt: 4, error: busy, jitter: 1) == .giveUp)
    let wrong = CKError(.invalidArguments, "wrong")
    #expect(policy.decision(afterAttempt: 1, error: wrong, jitter: 1) == .giveUp)
  }

  @Test("A service's retry delay is used, unless it exceeds the longest delay")
  func retryAfter() {
    func limited(_ seconds: Double) -> CKError {
      CKError(.requestRateLimited, userInfo: [CKErrorRetryAfterKey: seconds])
    }
    #expect(policy.decision(afterAttempt: 1, error: limited(3), jitter: 0) == .retry(after: 3))
    #expect(policy.decision(afterAttempt: 1, error: limited(5), jitter: 0) == .retry(after: 5))
    #expect(policy.decision(afterAttempt: 1, error: limited(6), jitter: 0) == .giveUp)
  }

  @Test("A service's retry delay is bounded to a finite number of seconds, at most a day")
  func boundedWaits() {
    func asked(_ text: String) -> Double? {
      ServiceClient.retryAfter(
        WebServiceResponse(status: 503, headers: ["retry-after": text], body: Data())
      )
    }
    #expect(asked("1.5") == 1.5)
    #expect(asked("-3") == 0)
    #expect(asked("86400") == 86_400)
    #expect(asked("1e300") == 86_400)
    for text in ["inf", "-inf", "nan", "soon"] { #expect(asked(text) == nil, "\(text)") }
  }

  @Test("An error after an attempt that may have been executed says so")
  func repeatedRequest() async throws {
    let service = ScriptedService()
    let client = try service.container(retries: .interactive).client()
    func modify(_ endpoint: Endpoint = .modifyRecords) async -> CKError? {
      do throws(CKError) {
        let _: RecordsResponse = try await client.call(
          endpoint,
          scope: .private,
          repeatable: true
        )
        return nil
      } catch {
        return error
      }
    }
    service.answer { _ in throw TransportError(wasSent: true, reason: "The reply was lost.") }
    service.answer("<html>", status: 413)
    let repeated = await modify()
    #expect(repeated?.code == .limitExceeded)
    #expect(repeated?.isOfRepeatedRequest == true)
    // A read may be repeated without a word.
    service.answer { _ in throw TransportError(wasSent: true, reason: "The reply was lost.") }
    service.answer("<html>", status: 413)
    #expect(await modify(.lookupRecords)?.isOfRepeatedRequest == false)
    service.answer { _ in throw TransportError(wasSent: false, reason: "It is offline.") }
    service.answer("<html>", status: 413)
    #expect(await modify()?.isOfRepeatedRequest == false)
    service.answer("<html>", status: 413)
    #expect(await modify()?.isOfRepeatedRequest == false)
  }
}
