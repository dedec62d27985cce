import CloudKitServer
import CloudKitWebServices
import Effects
import Foundation
import OpenCloudKit
import Synchronization

/// The CloudKit service in this process, with containers that act as several devices.
final class RealService: Sendable {
  let service: CloudKitService
  let apiToken: String
  private let requests = Mutex(0)

  private let away = Mutex(false)

  /// Whether the service is unreachable.
  var isAway: Bool {
    get { away.withLock { $0 } }
    set { away.withLock { $0 = newValue } }
  }

  private let hook = Mutex<(@Sendable (WebServiceRequest) async -> WebServiceResponse?)?>(nil)

  /// Sets a hook for each request before the service: it may delay it, or answer in the service's
  /// place.
  func intercept(_ body: (@Sendable (WebServiceRequest) async -> WebServiceResponse?)?) {
    hook.withLock { $0 = body }
  }

  /// The number of requests that the service has answered.
  var requestCount: Int { requests.withLock { $0 } }

  init(limits change: (inout ServiceLimits) -> Void = { _ in }) async throws {
    var limits = ServiceLimits()
    limits.passwordRounds = 2
    limits.passwordRule = .any
    change(&limits)
    service = try CloudKitService(
      ServiceConfiguration(baseURL: "http://service.test", limits: limits)
    )
    apiToken = try await service.bootstrapAPIToken()
  }

  /// A device of a user; without a name no user is signed in on it.
  func device(
    _ name: String,
    of person: String? = "ada",
    effects: Effects = .live
  ) async throws -> CKContainer {
    var webAuthToken: String?
    if let person {
      if try !service.accounts.has(named: person) {
        try await service.createAccount(userName: person, password: "secret")
      }
      webAuthToken = try await service.signIn(userName: person, container: "iCloud.test")
    }
    return CKContainer(
      identifier: "iCloud.test",
      configuration: CKContainerConfiguration(
        url: URL(string: "http://service.test"),
        apiToken: apiToken,
        webAuthToken: webAuthToken
      ),
      transport: Line(service: self),
      effects: effects,
      clientIdentifier: name
    )
  }

  /// The transport from a device to the service.
  private struct Line: CloudKitTransport {
    let service: RealService

    func send(_ request: WebServiceRequest) async throws -> WebServiceResponse {
      guard !service.isAway else {
        throw TransportError(wasSent: false, reason: "the service is away")
      }
      service.requests.withLock { $0 += 1 }
      let hook = service.hook.withLock { $0 }
      if let response = await hook?(request) { return response }
      let inner = service.service
      return try await InProcessTransport { await inner.respond(to: $0) }.send(request)
    }
  }
}
