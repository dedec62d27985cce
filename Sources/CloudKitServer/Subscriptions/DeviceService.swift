import CloudKitWebServices
import Effects
import Foundation
import Logging
import Synchronization

/// Device tokens, the long poll and the event stream.
package final class DeviceService: Sendable {
  let storage: any Storage
  let writer: StorageWriter
  let hub: NotificationHub
  let limits: ServiceLimits
  private let signer: Signer
  private let address: ServerAddress
  private let shutdownFlag: ShutdownFlag
  private let effects: Effects
  private let logger: Logger
  /// The checks after notifications of other servers.
  let listenerChecks = Mutex(RepeatedChecks())

  init(
    storage: any Storage,
    writer: StorageWriter,
    hub: NotificationHub,
    signer: Signer,
    address: ServerAddress,
    shutdownFlag: ShutdownFlag,
    limits: ServiceLimits,
    effects: Effects,
    logger: Logger
  ) {
    self.storage = storage
    self.writer = writer
    self.hub = hub
    self.signer = signer
    self.address = address
    self.shutdownFlag = shutdownFlag
    self.limits = limits
    self.effects = effects
    self.logger = logger
  }

  /// Milliseconds since 1970.
  var now: Int64 { effects.now.wireMilliseconds }

  /// `tokens/create` and `tokens/register`: both reply with the same three keys.
  func register(
    _ request: DeviceTokenRequest,
    _ context: RequestContext
  ) async throws -> Data {
    let environment = request.apnsEnvironment ?? context.environment.rawValue
    guard ContainerEnvironment(rawValue: environment) != nil else {
      throw ErrorDictionary(.badRequest, "invalid value for 'apnsEnvironment'")
    }
    let name = request.clientId.flatMap(limits.deviceName) ?? context.clientID
    let token: String
    if let principal = context.principal {
      token = try await register(
        of: principal,
        known: request.apnsToken,
        name: name,
        context
      )
    } else {
      // No row is stored for it, so the token itself contains its data.
      token = try signer.seal(
        UnownedDevice(
          container: context.container,
          environment: context.environment,
          clientID: name,
          expires: now + Int64(limits.deviceLifetime * 1000)
        ),
        for: .unownedDevice
      )
    }
    return try WireCoding.encode(
      DeviceTokenResponse(
        apnsEnvironment: environment,
        apnsToken: token,
        webcourierURL: "\(address.url)\(Route.Section.webcourier.path)/\(token)",
        eventStreamURL: context.isExtended
          ? "\(address.url)\(Route.Section.events.path)/\(token)" : nil
      )
    )
  }

  /// A device without a user: it gets no notification that needs one, and no row is stored for it.
  private struct UnownedDevice: Codable, Hashable, Sendable {
    var container: String
    var environment: ContainerEnvironment
    var clientID: String?
    /// Milliseconds since 1970.
    var expires: Int64
  }

  /// Issues a token to a user's device, or keeps its own.
  private func register(
    of principal: Principal,
    known sent: String?,
    name: String?,
    _ context: RequestContext
  ) async throws -> String {
    let fresh = effects.randomness.bytes(32).hexadecimal
    typealias Registered = (token: String, device: StoredDevice, removed: [String])
    let (token, device, removed) = try await writer.write {
      [self] () -> (WriteBatch?, Registered) in
      try storage.read { snapshot in
        let known = try sent.flatMap { try snapshot.device(token: TokenDigest.of($0)) }
        // A token of another container, or one that this server did not issue, is replaced; so is
        // another user's token, whose holder would receive this user's hub.
        let isUsable =
          known?.container == context.container && known?.environment == context.environment
          && known?.userRecordName == principal.userRecordName
        let token = isUsable ? sent ?? fresh : fresh
        let device = StoredDevice(
          token: TokenDigest.of(token),
          container: context.container,
          environment: context.environment,
          userRecordName: principal.userRecordName,
          clientID: name ?? (isUsable ? known?.clientID : nil)
        )
        var batch = WriteBatch()
        batch.devices = [device]
        batch.savedEntries = [
          try entry(
            binding(of: principal),
            of: device.token,
            account: principal.account
          )
        ]
        if !isUsable { try makeRoom(for: device, snapshot, in: &batch) }
        return (batch, (token, device, batch.removedDevices))
      }
    }
    hub.note(device)
    for token in removed { hub.end(token) }
    // A page receives only later commits, as from Apple's service; our own clients are notified to
    // fetch first.
    if token == fresh, !context.isExtended { hub.noteNothingMissed(by: device.token) }
    return token
  }

  /// Removes a user's devices that have not listened for longest, if there are too many.
  private func makeRoom(
    for device: StoredDevice,
    _ snapshot: any StorageSnapshot,
    in batch: inout WriteBatch
  ) throws {
    let others = try snapshot.devices(
      container: device.container,
      environment: device.environment,
      user: device.userRecordName ?? ""
    )
    guard others.count >= limits.devicesPerUser else { return }
    let oldest = try others.map { other in
      (
        token: other.token,
        expires: try snapshot.entry(DeviceBinding.key(other.token))?.expires ?? 0
      )
    }.sorted { ($0.expires, $0.token) < ($1.expires, $1.token) }
    let removed = oldest.prefix(others.count - limits.devicesPerUser + 1).map(\.token)
    batch.removedDevices = removed
    batch.removedEntries = removed.map(DeviceBinding.key)
  }

  /// The long poll: one notification, or `null` if there was none for a while.
  func poll(
    _ request: WebServiceRequest,
    _ target: RequestTarget
  ) async throws -> WebServiceResponse {
    // A reply consumes the notification, so only the poll itself may read it.
    guard request.method == "GET" || target.parts.count != 2 else {
      throw ErrorDictionary(.badRequest, "\(request.method) is not possible here")
    }
    let token = try listen(target)
    var body = Data("null".utf8)
    if case .entries(let entries) = await hub.poll(token), let entry = entries.first {
      body = try WireCoding.encode(entry.notification)
    }
    return WebServiceResponse(status: 200, headers: ["cache-control": "no-store"], body: body)
  }

  /// The event stream of a device; `path` is that of the URL issued with its token.
  package func openEventStream(path: String, lastEventID: String?) throws -> EventStream {
    guard !shutdownFlag.isSet else {
      throw ErrorDictionary(.tryAgainLater, "the server is stopping", retryAfter: 1)
    }
    let token = try listen(RequestTarget(path))
    return EventStream(hub, token: token, lastEventID: lastEventID)
  }

  /// The error for a client whose event stream could not be opened.
  ///
  /// A device with an unknown URL registers again; while the storage does not respond, a device
  /// keeps its URL and retries.
  func refusalOfEvents(_ target: RequestTarget) -> ErrorDictionary {
    do {
      _ = try listen(target)
    } catch let error as ErrorDictionary {
      return error
    } catch {
      logger.error("a stream of events was not opened", metadata: ["error": "\(error)"])
    }
    return ErrorDictionary(.tryAgainLater, "the stream cannot be opened now", retryAfter: 1)
  }

  /// Ends every poll and stream, because the server is stopping.
  package func endListening() { hub.close() }

  /// The digest of the token of a capability URL's device.
  private func listen(_ target: RequestTarget) throws -> String {
    guard target.parts.count == 2 else {
      throw ErrorDictionary.noHandler
    }
    let token = target.parts[1]
    let digest = TokenDigest.of(token)
    guard !shutdownFlag.isSet else { return digest }
    let unknown = ErrorDictionary(.notFound, "this is not a webcourier URL of the server")
    if let unowned = signer.open(token, as: UnownedDevice.self, for: .unownedDevice) {
      guard unowned.expires > now else { throw unknown }
      hub.note(
        StoredDevice(
          token: digest,
          container: unowned.container,
          environment: unowned.environment,
          clientID: unowned.clientID
        )
      )
      return digest
    }
    let found = try storage.read { snapshot -> StoredDevice? in
      guard let device = try snapshot.device(token: digest), try isBound(device, snapshot) else {
        return nil
      }
      try noteUse(of: device, snapshot)
      return device
    }
    guard let device = found else { throw unknown }
    hub.note(device)
    if hub.isFirstListening(of: digest) {
      try remind(device)
      // Noted after the read: if the storage did not respond, it is read again with the next poll.
      hub.noteListening(of: digest)
    }
    return digest
  }

  /// Notifies a device to fetch once, because notifications are only in memory and a restart loses
  /// them.
  private func remind(_ device: StoredDevice) throws {
    guard let user = device.userRecordName else { return }
    for scope in [DatabaseScope.private, .shared] {
      for stored in try storage.subscriptions(
        of: user,
        scope,
        device.container,
        device.environment
      ) {
        guard let subscription = try? stored.subscription() else { continue }
        let payload: PushNotification
        switch subscription.watched {
        case .database: payload = .database(subscription, scope, zone: nil)
        case .zone:
          guard let name = subscription.zoneID?.zoneName else { continue }
          payload = .zone(subscription, ZoneDirectory.id(named: name, owner: user))
        case .query, nil: continue
        }
        hub.post(
          payload.addressed(to: user, container: device.container, id: effects.notificationID()),
          key: stored.id,
          to: device.token
        )
      }
    }
  }
}
