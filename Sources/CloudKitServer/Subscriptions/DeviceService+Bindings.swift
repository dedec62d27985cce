import CloudKitWebServices
import Effects
import Foundation

extension DeviceService {
  /// The binding of a device that registers now; a server key has neither grant nor session.
  func binding(of principal: Principal) -> DeviceBinding {
    principal.grant.map { DeviceBinding(grant: $0) } ?? DeviceBinding(session: principal.session)
  }

  /// The entry to be saved for a device.
  func entry(
    _ binding: DeviceBinding,
    of device: String,
    account: String
  ) throws -> DirectoryEntry {
    DirectoryEntry(
      DeviceBinding.key(device),
      owner: account,
      expires: now + Int64(limits.deviceLifetime * 1000),
      body: try WireCoding.encode(binding)
    )
  }

  /// Whether the credential of a device is still valid.
  func isBound(_ device: StoredDevice, _ snapshot: any StorageSnapshot) throws -> Bool {
    guard let entry = try snapshot.entry(DeviceBinding.key(device.token)),
      (entry.expires ?? 0) > now
    else { return false }
    let binding = try WireCoding.decode(DeviceBinding.self, from: entry.body)
    if let grant = binding.grant {
      return try snapshot.entry(RefreshGrant.key(grant)).map { ($0.expires ?? 0) > now } ?? false
    }
    if let session = binding.session {
      return try snapshot.session(digest: session).map { $0.expires > now } ?? false
    }
    // A server key's device is removed with the key.
    guard let key = ServerKey.id(ofAccount: entry.owner) else { return false }
    return try snapshot.entry(ServerKey.key(key)) != nil
  }

  /// Extends the validity of a used URL, with one write in half of its lifetime.
  func noteUse(of device: StoredDevice, _ snapshot: any StorageSnapshot) throws {
    guard let entry = try snapshot.entry(DeviceBinding.key(device.token)),
      Double((entry.expires ?? 0) - now) < limits.deviceLifetime * 500
    else { return }
    var next = entry
    next.revision += 1
    next.expires = now + Int64(limits.deviceLifetime * 1000)
    let saved = next
    writer.directoryLane.async { [storage] in
      var batch = WriteBatch()
      batch.expectedEntries[saved.key] = .some(entry.revision)
      batch.savedEntries = [saved]
      // It was removed or extended by another process: both are correct.
      try? storage.commit(batch)
    }
  }

  /// Ends an account's event URLs whose credential has ended.
  func endDevices(
    of account: String,
    _ snapshot: any StorageSnapshot,
    in batch: inout WriteBatch,
    where isEnded: (DeviceBinding) -> Bool
  ) throws {
    let bindings = try snapshot.entries(
      DirectoryRange(.deviceBinding, owner: account, limit: .max)
    )
    for entry in bindings
    where isEnded(try WireCoding.decode(DeviceBinding.self, from: entry.body)) {
      batch.removedEntries.append(entry.key)
      batch.removedDevices.append(entry.key.name)
    }
  }

  /// The devices that one turn of a lane checks, with about three statements for each.
  private static var devicesPerCheck: Int { 50 }

  /// Ends polls and streams of devices whose binding has ended, a few in each turn of the lane that
  /// delivers notifications, so that those do not wait for the bindings of all devices.
  ///
  /// Another server reports each end of a credential: however many do, one check runs and one
  /// waits.
  func checkListeners(in lane: Lane) {
    guard listenerChecks.withLock({ $0.request() }) else { return }
    beginCheck(in: lane)
  }

  private func beginCheck(in lane: Lane) {
    lane.async { [weak self] in
      guard let self else { return }
      listenerChecks.withLock { $0.beginCheck() }
      check(hub.ownedDevices[...], in: lane)
    }
  }

  private func check(_ devices: ArraySlice<String>, in lane: Lane) {
    endUnbound(Array(devices.prefix(Self.devicesPerCheck)))
    let rest = devices.dropFirst(Self.devicesPerCheck)
    if !rest.isEmpty {
      lane.async { [weak self] in self?.check(rest, in: lane) }
    } else if !listenerChecks.withLock({ $0.finish() }) {
      beginCheck(in: lane)
    }
  }

  /// Ends polls and streams of devices whose binding has ended.
  func endUnboundListeners() { endUnbound(hub.ownedDevices) }

  /// Ends polls and streams of one account's devices whose binding has ended.
  func endUnboundListeners(of account: String) {
    // If the storage does not respond, the next check ends them.
    guard let users = try? storage.read({ try $0.users(account: account) }) else { return }
    endUnbound(
      users.flatMap { user in
        ContainerEnvironment.allCases.flatMap { environment in
          hub.devices(
            of: NotificationHub.Owner(
              container: user.container,
              environment: environment,
              user: user.recordName
            )
          )
        }
      }
    )
  }

  private func endUnbound(_ listening: [String]) {
    guard !listening.isEmpty else { return }
    let ended = try? storage.read { snapshot in
      try listening.filter { token in
        guard let device = try snapshot.device(token: token) else { return true }
        return try !isBound(device, snapshot)
      }
    }
    // If the storage does not respond, the next check ends them.
    for token in ended ?? [] { hub.end(token) }
  }
}
