import CloudKitWebServices
import Foundation
import OpenCloudKit
import Synchronization

/// Measures the requests between devices and server, and keeps the bodies to measure JSON with.
final class SyncMeter: Sendable {
  struct Share {
    var name: String
    var text: String
  }

  private struct State {
    var sending = 0.0
    var serving = 0.0
    var bodies: [Data] = []
  }

  private let state = Mutex(State())

  func reset() { state.withLock { $0 = State() } }

  /// Measures a request on the server's side.
  ///
  /// Long polls are excluded, since they wait without working.
  func serving(
    _ request: WebServiceRequest,
    _ body: () async -> WebServiceResponse
  ) async -> WebServiceResponse {
    let start = ProcessInfo.processInfo.systemUptime
    let response = await body()
    let span = ProcessInfo.processInfo.systemUptime - start
    if isWork(request) { state.withLock { $0.serving += span } }
    return response
  }

  /// Times a request on the client's side.
  func sending(
    _ request: WebServiceRequest,
    _ body: () async throws -> WebServiceResponse
  ) async throws -> WebServiceResponse {
    let start = ProcessInfo.processInfo.systemUptime
    let response = try await body()
    let span = ProcessInfo.processInfo.systemUptime - start
    if isWork(request) {
      state.withLock { state in
        state.sending += span
        state.bodies.append(request.body)
        state.bodies.append(response.body)
      }
    }
    return response
  }

  private func isWork(_ request: WebServiceRequest) -> Bool {
    request.path.contains("/records/") || request.path.contains("/changes/")
  }

  /// The parts of a sync's duration.
  ///
  /// Client and server run concurrently, so the parts may add up to more than the total.
  func shares(total: Double) throws -> [Share] {
    let state = state.withLock { $0 }
    let start = ProcessInfo.processInfo.systemUptime
    var records = 0
    for body in state.bodies { records += try weigh(body) }
    // Each body is written by one side and read by the other.
    let json = ProcessInfo.processInfo.systemUptime - start
    let http = max(0, state.sending - state.serving)
    let storage = max(0, state.serving - json / 2)
    let client = max(0, total - state.sending)
    func share(_ name: String, _ seconds: Double) -> Share {
      Share(
        name: name,
        text: String(format: "%.2f s, %.0f %%", seconds, seconds / total * 100)
      )
    }
    let bytes = state.bodies.reduce(0) { $0 + $1.count }
    return [
      share("  JSON, both ends", json),
      share("  HTTP and sockets", http),
      share("  server and its storage", storage),
      share("  devices and their stores", client),
      Share(name: "  on the wire", text: "\(bytes / 1024) KB, \(records) record dictionaries"),
    ]
  }

  /// Reads and writes a body once, as the two sides do; returns its number of records.
  private func weigh(_ body: Data) throws -> Int {
    struct Batch: Codable { var records: [RecordDictionary]? }
    guard !body.isEmpty else { return 0 }
    if let request = try? JSONDecoder().decode(ModifyRecordsRequest.self, from: body) {
      _ = try JSONEncoder().encode(request)
      return request.operations.count
    }
    if let changes = try? JSONDecoder().decode(ZoneChangesResponse.self, from: body) {
      _ = try JSONEncoder().encode(changes)
      return 0
    }
    if let batch = try? JSONDecoder().decode(Batch.self, from: body) {
      _ = try JSONEncoder().encode(batch)
      return batch.records?.count ?? 0
    }
    return 0
  }
}

/// A transport that measures its time.
struct MeteredTransport: CloudKitTransport {
  private let transport: any CloudKitTransport
  private let meter: SyncMeter

  init(_ transport: any CloudKitTransport, meter: SyncMeter) {
    self.transport = transport
    self.meter = meter
  }

  func send(_ request: WebServiceRequest) async throws -> WebServiceResponse {
    try await meter.sending(request) { try await transport.send(request) }
  }
}
