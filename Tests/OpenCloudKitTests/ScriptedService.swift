import CloudKitWebServices
import Effects
import Foundation
import OpenCloudKit
import Synchronization

/// A service that answers from a script and records the requests.
final class ScriptedService: Sendable {
  typealias Answer = @Sendable (WebServiceRequest) throws -> WebServiceResponse

  private struct State {
    var answers: [Answer] = []
    var requests: [WebServiceRequest] = []
  }

  private let state = Mutex(State())

  /// The requests so far.
  var requests: [WebServiceRequest] { state.withLock { $0.requests } }

  /// Appends a reply to the script.
  func answer(_ answer: @escaping Answer) {
    state.withLock { $0.answers.append(answer) }
  }

  /// Appends a JSON reply to the script.
  func answer(_ json: String, status: Int = 200, headers: [String: String] = [:]) {
    answer { _ in
      WebServiceResponse(status: status, headers: headers, body: Data(json.utf8))
    }
  }

  /// The JSON body of a request.
  func body(_ index: Int) throws -> NSDictionary {
    try JSONSerialization.jsonObject(with: requests[index].body) as? NSDictionary ?? [:]
  }

  struct Transport: CloudKitTransport {
    let service: ScriptedService

    func send(_ request: WebServiceRequest) async throws -> WebServiceResponse {
      try Task.checkCancellation()
      let answer: Answer? = service.state.withLock { state in
        state.requests.append(request)
        return state.answers.isEmpty ? nil : state.answers.removeFirst()
      }
      guard let answer else {
        throw TransportError(wasSent: false, reason: "the script has ended")
      }
      return try answer(request)
    }
  }

  /// A container that is connected to this service.
  ///
  /// Containers of equal seeds give equal names to downloaded files: tests that download files have seeds
  /// of their own, or run one after another.
  func container(
    webAuthToken: String? = "web/token+1=",
    clock: any EffectClock = LeapingClock(),
    retries: RetryPolicy = .never,
    seed: UInt64 = 1
  ) -> CKContainer {
    CKContainer(
      identifier: "iCloud.test",
      configuration: CKContainerConfiguration(
        url: URL(string: "http://service.test"),
        containerIdentifiers: ["iCloud.test"],
        apiToken: "api",
        webAuthToken: webAuthToken
      ),
      transport: Transport(service: self),
      effects: Effects(
        clock: clock,
        randomness: SeededRandomness(seed: seed),
        tasks: PoolTaskSpawner()
      ),
      clientIdentifier: "device-1",
      retries: retries
    )
  }
}

/// A clock whose sleeps take no time and are recorded.
final class LeapingClock: EffectClock {
  private let waits = Mutex<[Double]>([])

  var now: Date { Date(timeIntervalSince1970: 1_700_000_000 + slept.reduce(0, +)) }
  var uptime: Double { slept.reduce(0, +) }
  var slept: [Double] { waits.withLock { $0 } }

  func sleep(seconds: Double) async throws {
    try Task.checkCancellation()
    waits.withLock { $0.append(seconds) }
  }
}
