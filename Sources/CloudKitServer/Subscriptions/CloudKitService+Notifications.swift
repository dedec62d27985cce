import CloudKitWebServices
import Foundation

/// Device tokens, the long poll, and who is told of a commit.
extension CloudKitService {
  /// `tokens/create` and `tokens/register`: both answer the same three keys.
  func registerDevice(
    _ request: DeviceTokenRequest,
    _ context: RequestContext
  ) async throws -> Data {
    let environment = request.apnsEnvironment ?? context.environment.rawValue
    let fresh = effects.randomness.bytes(32).hexadecimal
    let device = try await write { [storage] () -> (WriteBatch?, StoredDevice) in
      let known = try request.apnsToken.flatMap { token in
        try storage.read { try $0.device(token: token) }
      }
      // A token of another container, or one that nobody gave out, is replaced.
      let isUsable =
        known?.container == context.container && known?.environment == context.environment
      let device = StoredDevice(
        token: isUsable ? known?.token ?? fresh : fresh,
        container: context.container,
        environment: context.environment,
        userRecordName: context.principal?.userRecordName ?? known?.userRecordName,
        clientID: request.clientId ?? context.clientID ?? known?.clientID
      )
      guard device != known else { return (nil, device) }
      var batch = WriteBatch()
      batch.devices = [device]
      return (batch, device)
    }
    return try WireCoding.encode(
      DeviceTokenResponse(
        apnsEnvironment: environment,
        apnsToken: device.token,
        webcourierURL: "\(baseURL)/webcourier/\(device.token)"
      )
    )
  }

  /// The long poll: one notification, or `null` when none came for a while.
  func respondToWebcourier(_ target: RequestTarget) async throws -> WebServiceResponse {
    guard target.parts.count == 2 else {
      throw ErrorDictionary(.notFound, "could not find handler for endpoint")
    }
    let token = target.parts[1]
    guard let device = try storage.read({ try $0.device(token: token) }) else {
      throw ErrorDictionary(.notFound, "this is not a webcourier URL of the server")
    }
    if notifications.isFirstPoll(of: token) { try remind(device) }
    let notification = await notifications.next(for: token, timeout: limits.longPollTimeout)
    return WebServiceResponse(
      status: 200,
      headers: ["cache-control": "no-store"],
      body: try notification.map { try WireCoding.encode($0) } ?? Data("null".utf8)
    )
  }

  /// Notifications wait in memory only; after a restart a device is told to look once.
  private func remind(_ device: StoredDevice) throws {
    guard let user = device.userRecordName else { return }
    for scope in [DatabaseScope.private, .shared] {
      for subscription in try databaseSubscriptions(of: user, scope, device) {
        notifications.post(
          payload(subscription, scope, zone: nil, user: user, container: device.container),
          subscription: subscription,
          to: device.token
        )
      }
    }
  }

  private func databaseSubscriptions(
    of user: String,
    _ scope: DatabaseScope,
    _ device: StoredDevice
  ) throws -> [String] {
    let id = try storage.partition(
      PartitionKey(
        container: device.container,
        environment: device.environment,
        scope: scope,
        owner: user
      )
    )
    return try storage.read { try $0.subscriptions(in: id, user: user) }.filter { stored in
      (try? stored.subscription())?.subscriptionType == .database
    }.map(\.id)
  }

  /// Tells watchers and the user's other devices of a commit.
  func announce(
    _ context: RequestContext,
    zones: [String],
    saved: Int,
    deleted: Int,
    device: String? = nil
  ) {
    let user = context.reader
    configuration.onCommit?(
      CommitEvent(
        container: context.container,
        environment: context.environment,
        database: context.scope,
        zones: zones,
        userRecordName: user,
        savedCount: saved,
        deletedCount: deleted
      )
    )
    guard context.scope == .private else { return }
    // What is committed stays committed: a failure here only delays the other devices' next look.
    guard let id = try? partition(context),
      let (subscriptions, devices) = try? storage.read({ snapshot in
        (
          try snapshot.subscriptions(in: id, user: user),
          try snapshot.devices(
            container: context.container,
            environment: context.environment,
            user: user
          )
        )
      })
    else { return }
    let origin = device ?? context.clientID
    for stored in subscriptions {
      guard let subscription = try? stored.subscription(),
        let zone = firingZone(of: subscription, zones)
      else { continue }
      let notification = payload(
        stored.id,
        .private,
        zone: zone,
        user: user,
        container: context.container,
        isZone: subscription.subscriptionType == .zone
      )
      for device in devices where origin == nil || device.clientID != origin {
        notifications.post(notification, subscription: stored.id, to: device.token)
      }
    }
  }

  /// The zone that a subscription fires for; nil where it does not.
  private func firingZone(of subscription: Subscription, _ zones: [String]) -> String? {
    let custom = zones.filter { $0 != ZoneID.defaultZoneName }
    switch subscription.subscriptionType {
    case .database: return custom.first
    case .zone: return custom.first { $0 == subscription.zoneID?.zoneName }
    case .query, nil: return nil
    }
  }

  private func payload(
    _ subscription: String,
    _ scope: DatabaseScope,
    zone: String?,
    user: String,
    container: String,
    isZone: Bool = false
  ) -> PushNotification {
    let source = NotificationSource(
      sid: subscription,
      zid: zone,
      zoid: zone == nil ? nil : user,
      dbs: scope == .private ? 1 : 2
    )
    return PushNotification(
      aps: PushNotification.Alert(contentAvailable: 1),
      ck: CloudKitPayload(
        nid: effects.uuid().uuidString.lowercased(),
        cid: container,
        ce: 2,
        ckuserid: user,
        fet: isZone ? source : nil,
        met: isZone ? nil : source
      )
    )
  }
}
