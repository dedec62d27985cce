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
    let fresh = effects.randomness.bytes(32).hexadecimal
    let name = request.clientId.flatMap(deviceName)
    let device = try await write { [self] () -> (WriteBatch?, StoredDevice) in
      let known = try request.apnsToken.flatMap { token in
        try storage.read { try $0.device(token: token) }
      }
      // A token of another container, or one that nobody gave out, is replaced; so is the token of
      // somebody else: who knows it would get what is meant for them.
      let isUsable =
        known?.container == context.container && known?.environment == context.environment
        && (known?.userRecordName == nil
          || known?.userRecordName == context.principal?.userRecordName)
      let device = StoredDevice(
        token: isUsable ? known?.token ?? fresh : fresh,
        container: context.container,
        environment: context.environment,
        userRecordName: context.principal?.userRecordName,
        clientID: name ?? context.clientID
          ?? (isUsable ? known?.clientID : nil)
      )
      var batch = WriteBatch()
      batch.savedEntries = [entry(device)]
      if device != known { batch.devices = [device] }
      return (batch, device)
    }
    notifications.note(device)
    // A page hears of commits alone, as from Apple's service; our own clients are told to look first.
    if device.token == fresh, !context.isExtended {
      notifications.noteNothingMissed(by: fresh)
    }
    return try WireCoding.encode(
      DeviceTokenResponse(
        apnsEnvironment: environment,
        apnsToken: device.token,
        webcourierURL: "\(baseURL)/webcourier/\(device.token)",
        eventStreamURL: context.isExtended ? "\(baseURL)/events/\(device.token)" : nil
      )
    )
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

  /// The device that a capability URL is for.
  private func listen(_ target: RequestTarget) throws -> String {
    guard target.parts.count == 2 else {
      throw ErrorDictionary(.notFound, "could not find handler for endpoint")
    }
    let token = target.parts[1]
    guard !isClosed else { return token }
    guard let device = try storage.read({ try $0.device(token: token) }) else {
      throw ErrorDictionary(.notFound, "this is not a webcourier URL of the server")
    }
    notifications.note(device)
    keep(device)
    if notifications.isFirstListening(of: token) {
      try remind(device)
      // Only now: a storage that did not answer is asked again with the next poll.
      notifications.noteListening(of: token)
    }
    return token
  }

  var deviceExpiry: Int64 { now + Int64(limits.deviceLifetime * 1000) }

  private func entry(_ device: StoredDevice) -> DirectoryEntry {
    DirectoryEntry(
      DirectoryEntry.Key(.device, device.token),
      owner: device.userRecordName ?? "",
      expires: deviceExpiry
    )
  }

  /// Notes that a device is in use, once in half of its time; who listens does not wait for it.
  private func keep(_ device: StoredDevice) {
    let key = DirectoryEntry.Key(.device, device.token)
    let expires = (try? storage.read { try $0.entry(key) })??.expires ?? 0
    guard Double(expires - now) < limits.deviceLifetime * 500 else { return }
    effects.tasks.spawn { [self] in
      // A device whose use is not noted is noted with its next poll.
      try? await write { [self] in
        var batch = WriteBatch()
        batch.savedEntries = [entry(device)]
        return (batch, ())
      }
    }
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
