import CloudKitServer
import CloudKitServerHTTP
import CloudKitWebServices
import Foundation
import Logging
import Synchronization
import Testing

/// The lines of the server's log for tools that block senders.
@Suite("Log lines of failures")
struct FailureLogTests {
  @Test("The log has the address of each failure, and no text from its sender")
  func lines() async throws {
    let lines = Mutex<[Data]>([])
    let logger = Logger(label: "test") { label in
      JSONLogHandler(label: label, level: .trace) { line in lines.withLock { $0.append(line) } }
    }
    var limits = ServiceLimits()
    limits.passwordRounds = 2
    let service = try CloudKitService(ServiceConfiguration(limits: limits, logger: logger))
    let path = "/account/sign-in?ckAPIToken=\(try await service.bootstrapAPIToken())"
    let body = #"{"userName":"from 6.6.6.6","password":"p","container":"c"}"#
    let senders = ["[2001:db8::1]:443", "from 1.2.3.4", "192.0.2.1:5000"]
    for address in Array(repeating: "192.0.2.1", count: 10) + senders {
      _ = await service.respond(
        to: WebServiceRequest(
          method: "POST",
          path: path,
          body: Data(body.utf8),
          clientAddress: address
        )
      )
    }
    await service.shutdown()
    let texts = lines.withLock { $0 }.map { String(decoding: $0, as: UTF8.self) }
    let messages = try lines.withLock { $0 }.compactMap { line in
      try (JSONSerialization.jsonObject(with: line) as? [String: Any])?["message"] as? String
    }
    #expect(
      messages.filter { $0.hasPrefix("sign-in ") }
        == Array(repeating: "sign-in failed from 192.0.2.1", count: 10) + [
          "sign-in failed from 2001:db8::1", "sign-in failed from an unknown address",
          "sign-in refused from 192.0.2.1",
        ]
    )
    #expect(!texts.contains { $0.contains("6.6.6.6") })
  }

  @Test(
    "The line of a refused request has endpoint, status and address, and the person if one is known"
  )
  func refusals() async throws {
    let lines = Mutex<[Data]>([])
    let logger = Logger(label: "test") { label in
      JSONLogHandler(label: label, level: .info) { line in lines.withLock { $0.append(line) } }
    }
    var limits = ServiceLimits()
    limits.passwordRounds = 2
    limits.passwordRule = .any
    let service = try CloudKitService(ServiceConfiguration(limits: limits, logger: logger))
    let apiToken = try await service.bootstrapAPIToken()
    try await service.createAccount(userName: "ada", password: "secret")
    let token = try await service.signIn(userName: "ada", container: "c")
    func ask(_ endpoint: Endpoint, apiToken: String, token: String) async -> Int {
      let path = WebServicePath(
        container: "c",
        environment: .development,
        database: .private,
        endpoint: endpoint
      ).text(items: [(WebServiceName.apiToken, apiToken), (WebServiceName.webAuthToken, token)])
      return await service.respond(
        to: WebServiceRequest(
          method: "POST",
          path: path,
          body: Data(
            #"{"operations":[{"operationType":"create","record":{"recordName":"hush"}}]}"#.utf8
          ),
          clientAddress: "192.0.2.1"
        )
      ).status
    }
    let statuses = [
      await ask(.listZones, apiToken: "made-up", token: token),
      await ask(.listZones, apiToken: apiToken, token: "made-up"),
      await ask(.modifyZones, apiToken: apiToken, token: token),
    ]
    #expect(statuses == [401, 421, 400])
    await service.shutdown()
    let found = lines.withLock { $0 }.compactMap {
      (try? JSONSerialization.jsonObject(with: $0)) as? [String: Any]
    }.filter { $0["message"] as? String == "the request was refused" }
    #expect(found.map { $0["status"] as? String } == ["401", "421", "400"])
    #expect(
      found.map { $0["endpoint"] as? String } == ["zones/list", "zones/list", "zones/modify"]
    )
    #expect(found.allSatisfy { $0["client"] as? String == "192.0.2.1" && $0["requestID"] != nil })
    #expect(found.map { $0["user"] != nil } == [false, false, true])
    let all = lines.withLock { $0 }.map { String(decoding: $0, as: UTF8.self) }.joined()
    #expect(!all.contains("hush") && !all.contains(token) && !all.contains(apiToken))
  }

  @Test("A failed step of the maintenance is logged with its name and its error")
  func maintenance() async throws {
    let lines = Mutex<[Data]>([])
    let logger = Logger(label: "test") { label in
      JSONLogHandler(label: label, level: .trace) { line in lines.withLock { $0.append(line) } }
    }
    let service = try CloudKitService(ServiceConfiguration(logger: logger))
    await service.runStep("events") {}
    await service.runStep("events") { throw CocoaError(.fileReadNoSuchFile) }
    await service.shutdown()
    await service.runStep("events") { throw CocoaError(.fileReadNoSuchFile) }
    let found = lines.withLock { $0 }.compactMap {
      (try? JSONSerialization.jsonObject(with: $0)) as? [String: Any]
    }.filter { $0["step"] != nil }
    #expect(found.map { $0["step"] as? String } == ["events"])
    #expect(found.first?["level"] as? String == "error")
    #expect((found.first?["error"] as? String)?.isEmpty == false)
  }
}
