import Testing

@testable import CloudKitServer

@Suite("The readiness of the storage")
struct ReadinessTests {
  @Test("While a read does not end the storage is not ready, and no other read begins")
  func hanging() async {
    let readiness = Readiness()
    #expect(await readiness.isReady(at: 0) { true })
    let (beginnings, beginning) = AsyncStream<Void>.makeStream()
    let (answers, answer) = AsyncStream<Bool>.makeStream()
    async let slow = readiness.isReady(at: 10) {
      beginning.yield()
      for await answer in answers { return answer }
      return false
    }
    for await _ in beginnings { break }
    // The former answer is valid for a moment.
    #expect(await readiness.isReady(at: 11) { false })
    for time in [12.0, 13, 60] { #expect(await !readiness.isReady(at: time) { true }) }
    answer.yield(true)
    #expect(await slow)
    #expect(await !readiness.isReady(at: 61) { false })
    #expect(await !readiness.isReady(at: 61.5) { true })
    #expect(await readiness.isReady(at: 62) { true })
  }
}
