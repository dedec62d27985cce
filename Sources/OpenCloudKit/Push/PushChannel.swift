import CloudKitWebServices
import Effects
import Foundation

/// Receives the service's notifications: from a stream of server-sent events if service and
/// transport support one, otherwise by long polls.
///
/// `next()` never returns the same notification twice. A channel that breaks is opened again with
/// growing pauses. A stream resumes after the last event it received; where that is impossible, as
/// with every poll, the next event is `connected`, since notifications may have been missed.
package actor PushChannel {
  private let client: ServiceClient
  private let pauses: RetryPolicy
  /// The addresses of the open channel; nil while the channel is closed.
  private var device: DeviceTokenResponse?
  /// The device's token at the service, kept when the channel is opened again.
  private var knownToken: String?
  /// The open stream.
  private var stream: OpenReply?
  private var opened = 0.0
  private var reader = ServerEventReader()
  private var waiting: [ServerEvent] = []
  /// The identifier of the last event, from which a stream resumes.
  private var lastEventID: String?
  /// Whether the service or a proxy does not support the stream, so that the channel polls.
  private var isStreamRefused = false
  private var failures = 0
  /// A stream, or a poll without a notification, that ends in fewer seconds counts as a failure.
  private static let shortestSilence = 1.0

  package init(client: ServiceClient, pauses: RetryPolicy = .persistent) {
    self.client = client
    self.pauses = pauses
  }

  /// Waits for the next event.
  ///
  /// Throws if waiting longer can't help: the task was cancelled, no user is signed in, or the app
  /// is not entitled to push.
  package func next() async throws(CKError) -> PushEvent {
    while true {
      switch try await nextMessage() {
      case .connected: return .connected
      case .payload(let body):
        guard let payload = Self.payload(of: body) else { continue }
        return event(payload)
      }
    }
  }

  /// A message of the channel: a change of its own state, or a notification's payload.
  enum Message: Sendable {
    /// The channel was opened, or opened again.
    case connected
    /// A notification's JSON.
    case payload(Data)
  }

  /// Waits for the next message; see `next()`.
  func nextMessage() async throws(CKError) -> Message {
    guard client.configuration.isPushEnabled else {
      throw CKError(
        .missingEntitlement,
        "The CloudKit configuration turns push off.",
        remedy: "Set \"push\" to true."
      )
    }
    while true {
      do {
        guard let device else {
          // Failures are still counted: a channel that opens may break at once, each time.
          device = try await open()
          return .connected
        }
        if let address = device.eventStreamURL, !isStreamRefused {
          guard let message = try await nextOfStream(address) else { continue }
          client.invalidateSharedReads()
          return message
        }
        let start = client.effects.clock.uptime
        if let body = try await poll(device.webcourierURL) {
          failures = 0
          client.invalidateSharedReads()
          return .payload(body)
        }
        if client.effects.clock.uptime - start < Self.shortestSilence {
          // A service that shuts down answers each poll at once: pause between them.
          try await pause()
        } else {
          failures = 0
        }
      } catch {
        try await pause(after: error)
      }
    }
  }

  private func open() async throws(CKError) -> DeviceTokenResponse {
    let device = try await client.call(
      .createToken,
      scope: nil,
      body: DeviceTokenRequest(
        apnsEnvironment: client.configuration.environment.rawValue,
        // Reuses the device token, unless the service discarded it or another user signed in.
        apnsToken: knownToken,
        clientId: client.clientIdentifier
      ),
      repeatable: true,
      as: DeviceTokenResponse.self
    )
    knownToken = device.apnsToken
    return device
  }

  // MARK: The stream

  /// The next message of the stream; nil if the caller has to try again.
  private func nextOfStream(_ address: String) async throws(CKError) -> Message? {
    while !waiting.isEmpty {
      let event = waiting.removeFirst()
      if let id = event.id { lastEventID = id }
      switch event.name {
      // The service could not resume the stream: some notifications were lost.
      case "resync" where event.data != nil: return .connected
      case "notification":
        if let data = event.data { return .payload(data) }
      default: break
      }
    }
    guard let stream else {
      stream = try await openStream(address)
      opened = client.effects.clock.uptime
      reader = ServerEventReader()
      return nil
    }
    do {
      guard let bytes = try await stream.next() else {
        throw TransportError(wasSent: true, reason: "the stream ended")
      }
      waiting = try reader.read(bytes)
      // A stream that ends right after it was opened still counts as a failure.
      if client.effects.clock.uptime - opened >= Self.shortestSilence { failures = 0 }
      return nil
    } catch is ServerEventReader.Malformed {
      throw CKError(.internalError, "The service sent events that can't be read.")
    } catch {
      throw CKError(transport: error)
    }
  }

  private func openStream(_ address: String) async throws(CKError) -> OpenReply? {
    var headers = ["accept": "text/event-stream"]
    headers["last-event-id"] = lastEventID
    let reply = try await client.open(
      WebServiceRequest(method: "GET", path: address, headers: headers)
    )
    guard let reply else {
      isStreamRefused = true
      return nil
    }
    guard (200..<300).contains(reply.response.status) else {
      throw client.error(of: reply.response, scope: nil, zone: .default)
    }
    guard reply.response.headers["content-type"]?.hasPrefix("text/event-stream") == true else {
      isStreamRefused = true
      return nil
    }
    return reply
  }

  // MARK: The poll

  /// Performs one long poll; nil if it timed out without a notification.
  private func poll(_ courier: String) async throws(CKError) -> Data? {
    let response = try await client.exchange(WebServiceRequest(method: "GET", path: courier))
    guard (200..<300).contains(response.status) else {
      throw client.error(of: response, scope: nil, zone: .default)
    }
    guard Self.payload(of: response.body) == nil else { return response.body }
    guard Self.isJSONOrEmpty(response.body) else {
      // A proxy replied; the notification that the service had for this poll is lost.
      throw CKError(.internalError, "The service's reply to a poll is not JSON.")
    }
    return nil
  }

  /// Whether a reply without a notification is the service's: a poll that times out has the body
  /// `null`, or none.
  private static func isJSONOrEmpty(_ body: Data) -> Bool {
    guard body.contains(where: { !" \t\r\n".utf8.contains($0) }) else { return true }
    return (try? JSONSerialization.jsonObject(with: body, options: .fragmentsAllowed)) != nil
  }

  private static func payload(of body: Data) -> CloudKitPayload? {
    (try? WireCoding.decode(PushNotification?.self, from: body))??.ck
  }

  private func event(_ payload: CloudKitPayload) -> PushEvent {
    guard let source = payload.met ?? payload.fet ?? payload.qry else {
      return .changed(scope: nil, zoneID: nil, subscriptionID: nil)
    }
    let scope: CKDatabase.Scope? =
      switch source.dbs {
      case 0: .public
      case 1: .private
      case 2: .shared
      default: nil
      }
    let mapping = WireMapping(scope: scope ?? .private, effects: client.effects)
    let zoneID = source.zid.map {
      mapping.zoneID(ZoneID(zoneName: $0, ownerRecordName: source.zoid))
    }
    return .changed(scope: scope, zoneID: zoneID, subscriptionID: source.sid)
  }

  /// Waits before the next attempt; throws the errors that another attempt can't fix.
  private func pause(after error: CKError) async throws(CKError) {
    let isStream = stream != nil || lastEventID != nil
    stream = nil
    // A stream resumes from its last event. In other cases the device is registered again.
    if !isStream || !error.isTransient {
      device = nil
      lastEventID = nil
      waiting = []
    }
    switch error.code {
    case .operationCancelled, .notAuthenticated, .permissionFailure, .missingEntitlement,
      .badContainer:
      throw error
    default:
      break
    }
    try await pause(atLeast: error.retryAfterSeconds ?? 0)
  }

  private func pause(atLeast asked: Double = 0) async throws(CKError) {
    failures += 1
    let own = pauses.delay(
      afterAttempt: failures,
      jitter: client.effects.randomness.fraction()
    )
    do {
      try await client.effects.clock.sleep(seconds: max(asked, own))
    } catch {
      throw CKError(transport: CancellationError())
    }
  }
}

extension CKContainer {
  /// A channel of the device's notifications, for one reader.
  package func pushChannel() throws(CKError) -> PushChannel {
    PushChannel(client: try client())
  }
}
