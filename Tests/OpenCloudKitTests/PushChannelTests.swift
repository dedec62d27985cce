import CloudKitWebServices
import Foundation
import OpenCloudKit
import Testing

@Suite("The push channel")
struct PushChannelTests {
  private let service = ScriptedService()

  private func answerToken(_ url: String) {
    service.answer(
      """
      {"apnsEnvironment":"development","apnsToken":"a","webcourierURL":"\(url)"}
      """
    )
  }

  @Test("The push channel opens, polls through timeouts, and returns changes")
  func events() async throws {
    answerToken("http://courier.test/1")
    service.answer("null")
    service.answer("")
    service.answer(
      """
      {"aps":{"content-available":1},"ck":{"nid":"x","cid":"iCloud.test","ce":2,
       "met":{"sid":"sub","zid":"zone","zoid":"_me","dbs":1}}}
      """
    )
    let channel = try service.container().pushChannel()
    #expect(try await channel.next() == .connected)
    #expect(
      try await channel.next()
        == .changed(
          scope: .private,
          zoneID: CKRecordZone.ID(zoneName: "zone"),
          subscriptionID: "sub"
        )
    )
    #expect(service.requests[0].path.hasPrefix("/device/1/iCloud.test/development/tokens/create"))
    #expect(try service.body(0)["clientId"] as? String == "device-1")
    #expect(
      service.requests.dropFirst().map(\.path)
        == .init(repeating: "http://courier.test/1", count: 3)
    )
    #expect(service.requests[1].method == "GET")
  }

  @Test("A broken push channel is opened again after growing pauses, and returns connected")
  func reconnects() async throws {
    let clock = LeapingClock()
    answerToken("/1")
    service.answer { _ in throw TransportError(wasSent: true, reason: "reset") }
    service.answer { _ in throw TransportError(wasSent: false, reason: "refused") }
    service.answer("{\"serverErrorCode\":\"NOT_FOUND\"}", status: 404)
    answerToken("/2")
    service.answer("{\"ck\":{\"nid\":\"y\"}}")
    let channel = try service.container(clock: clock).pushChannel()
    #expect(try await channel.next() == .connected)
    #expect(try await channel.next() == .connected)
    #expect(
      try await channel.next() == .changed(scope: nil, zoneID: nil, subscriptionID: nil)
    )
    #expect(clock.slept.count == 3)
    #expect(clock.slept[2] > clock.slept[0] / 2)
  }

  @Test("A reply that is no JSON makes the push channel connect again, later each time")
  func signInPage() async throws {
    let clock = LeapingClock()
    answerToken("/1")
    service.answer("<html>")
    answerToken("/1")
    service.answer("<html>")
    answerToken("/1")
    let channel = try service.container(clock: clock).pushChannel()
    for _ in 0..<3 { #expect(try await channel.next() == .connected) }
    // A page each time is no reason to ask all the time.
    #expect(clock.slept.count == 2)
    #expect(clock.slept[1] >= clock.slept[0])
  }

  @Test("The push channel throws when signed out or cancelled")
  func ends() async throws {
    service.answer("{\"serverErrorCode\":\"AUTHENTICATION_REQUIRED\"}", status: 421)
    let channel = try service.container().pushChannel()
    let error = await #expect(throws: CKError.self) { try await channel.next() }
    #expect(error?.code == .notAuthenticated)
    let waiting = try service.container().pushChannel()
    let task = Task { try await waiting.next() }
    task.cancel()
    let outcome = await task.result
    #expect(throws: CKError.self) { try outcome.get() }
  }
}
