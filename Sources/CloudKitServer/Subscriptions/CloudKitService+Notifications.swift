import CloudKitWebServices
import Foundation

/// Device tokens, the long poll and the event stream.
extension CloudKitService {
  /// `tokens/create` and `tokens/register`: both answer the same three keys.
  func registerDevice(
    _ request: DeviceTokenRequest,
    _ context: RequestContext
  ) async throws -> Data {
    let environment = request.apnsEnvironment ?? context.environment.rawValue
    guard ContainerEnvironment(rawValue: environment) != nil else {
      throw ErrorDictionary(.badRequest, "invalid value for 'apnsEnvironment'")
    }
    let name = request.clientId.flatMap(deviceName) ?? context.clientID
    let token: String
    if let principal = context.principal {
      token = try await registerDevice(
        of: principal,
        known: request.apnsToken,
        name: name,
        context
      )
    } else {
      // No row is stored for it, so the token itself says what it is.
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
        webcourierURL: "\(baseURL)/webcourier/\(token)",
        eventStreamURL: context.isExtended ? "\(baseURL)/events/\(token)" : nil
      )
    )
  }

  /// A device without a person: it gets no notification that needs one, and no row is stored for it.
  private struct UnownedDevice: Codable, Hashable, Sendable {
    var container: String
    var environment: ContainerEnvironment
    var clientID: String?
    /// Milliseconds since 1970.
    var expires: Int64
  }

  /// Gives a person's device a token, or lets it keep its own.
  private func registerDevice(
    of principal: Principal,
    known sent: String?,
    name: String?,
    _ context: RequestContext
  ) async throws -> String {
    let fresh = effects.randomness.bytes(32).hexadecimal
    typealias Registered = (token: String, device: StoredDevice)
    let (token, device) = try await write { [self] () -> (WriteBatch?, Registered) in
      try storage.read { snapshot in
        let known = try sent.flatMap { try snapshot.device(token: Self.digest($0)) }
        // A token of another container, or one that this server did not give out, is replaced; so is
        // the token of another person: its holder would get what is meant for this one.
        let isUsable =
          known?.container == context.container && known?.environment == context.environment
          && known?.userRecordName == principal.userRecordName
        let token = isUsable ? sent ?? fresh : fresh
        let device = StoredDevice(
          token: Self.digest(token),
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
        return (batch, (token, device))
      }
    }
    notifications.note(device)
    // A page hears of commits alone, as from Apple's service; our own clients are told to look first.
    if token == fresh, !context.isExtended { notifications.noteNothingMissed(by: device.token) }
    return token
  }

  /// Forgets the devices of a person that have not listened for longest, where there are too many.
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
    let gone = oldest.prefix(others.count - limits.devicesPerUser + 1).map(\.token)
    batch.removedDevices = gone
    batch.removedEntries = gone.map(DeviceBinding.key)
  }

  /// The long poll: one notification, or `null` when none came for a while.
  func respondToWebcourier(
    _ request: WebServiceRequest,
    _ target: RequestTarget
  ) async throws -> WebServiceResponse {
    // What is answered is used up, so nothing but the poll itself may take it.
    guard request.method == "GET" || target.parts.count != 2 else {
      throw ErrorDictionary(.badRequest, "\(request.method) is not possible here")
    }
    let token = try listen(target)
    var body = Data("null".utf8)
    if case .entries(let entries) = await notifications.poll(token), let entry = entries.first {
      body = try WireCoding.encode(entry.notification)
    }
    return WebServiceResponse(status: 200, headers: ["cache-control": "no-store"], body: body)
  }

  /// The stream of events of a device; `path` is that of the URL handed out with its token.
  package func openEventStream(path: String, lastEventID: String?) throws -> EventStream {
    guard !isClosed else {
      throw ErrorDictionary(.tryAgainLater, "the server is stopping", retryAfter: 1)
    }
    let token = try listen(RequestTarget(path))
    return EventStream(notifications, token: token, lastEventID: lastEventID)
  }

  /// Why a stream of events could not be opened, for the one who asked for it.
  ///
  /// A device whose URL is not known registers anew; one that comes while the storage is out of reach
  /// keeps its URL and comes again.
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

  /// Ends every poll and stream; the server is about to stop.
  package func endListening() { notifications.close() }

  /// The digest of the token of the device that a capability URL is for.
  private func listen(_ target: RequestTarget) throws -> String {
    guard target.parts.count == 2 else {
      throw ErrorDictionary(.notFound, "could not find handler for endpoint")
    }
    let token = target.parts[1]
    let digest = Self.digest(token)
    guard !isClosed else { return digest }
    let unknown = ErrorDictionary(.notFound, "this is not a webcourier URL of the server")
    if let unowned = signer.open(token, as: UnownedDevice.self, for: .unownedDevice) {
      guard unowned.expires > now else { throw unknown }
      notifications.note(
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
    notifications.note(device)
    if notifications.isFirstListening(of: digest) {
      try remind(device)
      // Only now: a storage that did not answer is asked again with the next poll.
      notifications.noteListening(of: digest)
    }
    return digest
  }

  /// Notifications wait in memory only; after a restart a device is told to look once.
  private func remind(_ device: StoredDevice) throws {
    guard let user = device.userRecordName else { return }
    for scope in [DatabaseScope.private, .shared] {
      for stored in try subscriptions(
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
        notifications.post(
          payload.addressed(to: user, container: device.container, id: notificationID()),
          key: stored.id,
          to: device.token
        )
      }
    }
  }

  func notificationID() -> String { effects.uuid().uuidString.lowercased() }

  func subscriptions(
    of user: String,
    _ scope: DatabaseScope,
    _ container: String,
    _ environment: ContainerEnvironment
  ) throws -> [StoredSubscription] {
    let id = try storage.partition(
      PartitionKey(container: container, environment: environment, scope: scope, owner: user)
    )
    return try storage.read { try $0.subscriptions(in: id, user: user) }
  }
}
