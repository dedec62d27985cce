import CloudKitServer
import CloudKitWebServices
import Effects
import Foundation
import OpenCloudKit

/// Carries requests of all devices to the server of the world, and has them fail as the plan says.
final class SimulatedNetwork: @unchecked Sendable {
  // Unchecked: used by the one thread of a run.

  /// The transport of one device.
  final class Link: @unchecked Sendable {
    // Unchecked: used by the one thread of a run.
    let device: Int
    let name: String
    var isOnline = true
    /// No faults: for calls of the test itself.
    var isPerfect = false
    var requestCount = 0
    /// Batches of changes that the device has begun to send.
    var batchCount = 0
    /// How often the server has lost data of the device's person.
    var lossCount = 0
    /// That number when the last request for changes that was answered reached the server.
    var lossesRead = 0
    var process: SimulatedProcess?

    init(device: Int, name: String) {
      self.device = device
      self.name = name
    }
  }

  private struct Exchange {
    var link: Link
    var continuation: CheckedContinuation<WebServiceResponse, any Error>
    var task: SpawnedTask?
  }

  private let clock: SimulatedClock
  private let random: SeededRandomness
  private let conditions: NetworkConditions
  private let planned: [Int: [Int: RequestFaultKind]]?
  private var exchanges: [Int: Exchange] = [:]
  private var lastExchange = 0
  /// The server that runs now.
  var server: (service: CloudKitService, process: SimulatedProcess)?
  /// Ends the injection of faults.
  var isCalm = false
  /// Ends all transport: the run is over.
  var isOver = false
  /// The faults that happened, in order.
  private(set) var fired: [PlannedRequestFault] = []
  private(set) var requests: [String: Int] = [:]
  let note: (String, String) -> Void

  init(plan: SimulationPlan, clock: SimulatedClock, note: @escaping (String, String) -> Void) {
    self.clock = clock
    self.note = note
    conditions = plan.network
    random = SeededRandomness(seed: SeedMixing.mix(plan.seed, "network"))
    planned = plan.requestFaults.map { faults in
      Dictionary(grouping: faults, by: \.device).mapValues { own in
        Dictionary(own.map { ($0.request, $0.kind) }) { first, _ in first }
      }
    }
  }

  // MARK: Faults

  /// The fault of a device's next request.
  private func fault(_ link: Link, _ verb: String) -> RequestFaultKind? {
    // Drawn in any case, so that planned faults leave everything else as it was.
    let draws = RequestFaultKind.allCases.map { ($0, random.fraction()) }
    guard !isCalm, !link.isPerfect, link.process?.isDead != true else { return nil }
    let kind: RequestFaultKind?
    if let planned {
      kind = planned[link.device]?[link.requestCount]
    } else {
      kind =
        draws.first { kind, draw in
          draw < conditions.faults[kind] ?? 0 && kind.applies(to: verb)
        }?.0
    }
    if let kind {
      fired.append(
        PlannedRequestFault(device: link.device, request: link.requestCount, kind: kind)
      )
    }
    return kind
  }

  func send(_ request: WebServiceRequest, _ link: Link) async throws -> WebServiceResponse {
    let verb = Self.verb(of: request.path)
    link.requestCount += 1
    requests[verb, default: 0] += 1
    let number = link.requestCount
    let fault = fault(link, verb)
    let (there, back) = (
      random.between(0...conditions.latency), random.between(0...conditions.latency)
    )
    let long = random.between(1...120)
    guard !isOver, link.isOnline else {
      throw TransportError(wasSent: false, reason: "The device is offline.")
    }
    if verb == "records/modify" { link.batchCount += 1 }
    if verb != "poll" || fault != nil {
      note(link.name, "request \(number) \(verb)\(fault.map { ": \($0.rawValue)" } ?? "")")
    }
    if fault == .killBefore { try await die(link) }
    try await clock.sleep(seconds: fault == .delayed ? long : there)
    try checkOnline(link)
    switch fault {
    case .requestLost:
      try await clock.sleep(seconds: long)
      throw TransportError(wasSent: true, reason: "The request was lost.")
    case let refusal? where refusal.refusal != nil:
      return refusal.refusal ?? WebServiceResponse(status: 500)
    case .duplicated: duplicate(request, after: long)
    default: break
    }
    let losses = link.lossCount
    let response = try await exchange(request, link)
    switch fault {
    // A wait for notifications may have begun before the calm: from then on nothing launches a
    // killed app again.
    case .killAfterCommit where !isCalm: try await die(link)
    case .replyLost:
      try await clock.sleep(seconds: long)
      throw TransportError(wasSent: true, reason: "The reply was lost.")
    case .failureAfterCommit:
      return WebServiceResponse(status: 502, headers: [:], body: Data("Bad gateway".utf8))
    case .garbled:
      // A page with an error status answers requests for records only; the client ignores a page
      // for other requests.
      let status =
        verb.hasPrefix("records/") ? Self.pageStatuses[number % Self.pageStatuses.count] : 200
      return WebServiceResponse(status: status, headers: [:], body: Data("<html>".utf8))
    default: break
    }
    try await clock.sleep(seconds: fault == .replyDelayed ? long : back)
    try checkOnline(link)
    if verb == "changes/database" { link.lossesRead = max(link.lossesRead, losses) }
    return response
  }

  /// The statuses of pages that something on the way answers with.
  private static let pageStatuses = [200, 403, 200, 404, 200, 409]

  private func checkOnline(_ link: Link) throws {
    guard link.isOnline, !isOver else {
      throw TransportError(wasSent: true, reason: "The connection broke.")
    }
  }

  private func die(_ link: Link) async throws {
    link.process?.kill()
    // Nothing of the process runs from here on; at the end of the run the sleep is cancelled.
    try await clock.sleep(seconds: 1e9)
    throw CancellationError()
  }

  /// Sends the request a second time, whose reply no device waits for.
  private func duplicate(_ request: WebServiceRequest, after seconds: Double) {
    guard let server else { return }
    server.process.spawn { [clock] in
      do { try await clock.sleep(seconds: seconds) } catch { return }
      _ = await server.service.respond(to: request)
    }
  }

  // MARK: Exchanges

  /// Runs the request on the server; its reply is lost if the device, the connection or the server
  /// ends.
  private func exchange(
    _ request: WebServiceRequest,
    _ link: Link
  ) async throws -> WebServiceResponse {
    try Task.checkCancellation()
    var request = request
    request.path = InProcessTransport.withoutOrigin(request.path)
    lastExchange += 1
    let number = lastExchange
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        guard let server, !isOver else {
          return continuation.resume(
            throwing: TransportError(wasSent: false, reason: "The server does not answer.")
          )
        }
        exchanges[number] = Exchange(link: link, continuation: continuation)
        exchanges[number]?.task = server.process.spawn { [request] in
          let response = await server.service.respond(to: request)
          self.end(number, .success(response))
        }
      }
    } onCancel: {
      self.end(number, .failure(CancellationError()))
    }
  }

  private func end(_ number: Int, _ result: Result<WebServiceResponse, any Error>) {
    guard let exchange = exchanges.removeValue(forKey: number) else { return }
    if case .failure = result { exchange.task?.cancel() }
    exchange.continuation.resume(with: result)
  }

  /// Breaks the connections of a device, or all.
  func breakConnections(of link: Link?) {
    let broken = exchanges.filter { link == nil || $0.value.link === link }.keys.sorted()
    for number in broken {
      end(number, .failure(TransportError(wasSent: true, reason: "The connection broke.")))
    }
  }

  /// The last two parts of a path, such as `records/modify`; `poll` for a wait for notifications.
  static func verb(of path: String) -> String {
    let path = path.split(separator: "?").first.map(String.init) ?? path
    if path.contains("courier") || path.contains("/device/") { return "poll" }
    let parts = path.split(separator: "/").suffix(2)
    if path.contains("assets") || path.contains("_asset") || path.contains("upload") {
      return "asset"
    }
    return parts.joined(separator: "/")
  }
}

extension RequestFaultKind {
  func applies(to verb: String) -> Bool {
    switch self {
    case .tokenExpired: verb.hasPrefix("changes/") || verb.hasSuffix("changes/zone")
    case .zoneBusy, .limitExceeded: verb == "records/modify"
    default: true
    }
  }

  /// The reply of a server that refuses the request.
  var refusal: WebServiceResponse? {
    func reply(_ error: ErrorDictionary, _ headers: [String: String] = [:]) -> WebServiceResponse {
      WebServiceResponse(
        status: error.serverErrorCode.httpStatus,
        headers: headers,
        body: (try? WireCoding.encode(error)) ?? Data()
      )
    }
    switch self {
    case .throttled:
      return reply(ErrorDictionary(.throttled, "Too many requests.", retryAfter: 20))
    case .busy: return WebServiceResponse(status: 503, headers: [:], body: Data())
    case .zoneBusy: return reply(ErrorDictionary(.other("ZONE_BUSY"), "The zone is busy."))
    case .limitExceeded:
      return reply(
        ErrorDictionary(.badRequest, "Too large.", extension: .init(code: .limitExceeded))
      )
    case .serverError: return reply(ErrorDictionary(.internalError, "The server failed."))
    case .tokenExpired:
      return reply(
        ErrorDictionary(.badRequest, "Expired.", extension: .init(code: .changeTokenExpired))
      )
    default: return nil
    }
  }
}

/// A device's transport.
struct SimulatedTransport: CloudKitTransport {
  let network: SimulatedNetwork
  let link: SimulatedNetwork.Link

  func send(_ request: WebServiceRequest) async throws -> WebServiceResponse {
    try await network.send(request, link)
  }
}
