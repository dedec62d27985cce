import CloudKitWebServices
import Effects
import Foundation
import OpenCloudKit

/// Forwards requests to another transport, except for the faults of a plan.
package struct FaultyTransport: CloudKitTransport {
  private let base: any CloudKitTransport
  private let faults: FaultPlan
  private let effects: Effects

  package init(_ base: any CloudKitTransport, faults: FaultPlan, effects: Effects) {
    self.base = base
    self.faults = faults
    self.effects = effects
  }

  package func send(_ request: WebServiceRequest) async throws -> WebServiceResponse {
    guard faults.isOnline else {
      throw TransportError(wasSent: false, reason: "The device is offline.")
    }
    switch faults.fault(for: request.path) {
    case .loseRequest?:
      throw TransportError(wasSent: true, reason: "The request was lost.")
    case .loseReply?:
      _ = try await base.send(request)
      throw TransportError(wasSent: true, reason: "The reply was lost.")
    case .fail(let status)?:
      return WebServiceResponse(status: status, headers: [:], body: Data())
    case .delay(let seconds)?:
      try await effects.clock.sleep(seconds: seconds)
      // The request had not arrived when the device went offline, so the server never gets it.
      guard faults.isOnline else {
        throw TransportError(wasSent: false, reason: "The device went offline.")
      }
    case nil:
      break
    }
    return try await whileOnline { try await base.send(request) }
  }

  /// A reply that arrives after the device went offline is lost.
  private func whileOnline(
    _ body: @escaping @Sendable () async throws -> WebServiceResponse
  ) async throws -> WebServiceResponse {
    try await withThrowingTaskGroup(of: WebServiceResponse?.self) { group in
      group.addTask { try await body() }
      group.addTask {
        await faults.waitUntilOffline()
        return nil
      }
      defer { group.cancelAll() }
      guard let first = try await group.next(), let response = first else {
        throw TransportError(wasSent: true, reason: "The device went offline.")
      }
      return response
    }
  }
}
