import CloudKitWebServices
import Foundation

/// Whose proof a device's address for events stands on.
///
/// The address is a right of its own: who has it reads notifications, which hold fields of records.
/// So it ends with the sign-in that it was given to, or when nothing has listened for long.
struct DeviceBinding: Codable, Hashable, Sendable {
  /// The grant of a device that stays signed in; its sessions come and go.
  var grant: String?
  /// The digest of the user token, where no grant has it.
  var session: String?

  static func key(_ device: String) -> DirectoryEntry.Key {
    DirectoryEntry.Key(.deviceBinding, device)
  }
}

extension CloudKitService {
  /// What a device that registers now is bound to; a server key has neither grant nor session.
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

  /// Whether what a device is bound to still holds.
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
    // A server key's device ends with the key.
    guard let key = ServerKey.id(ofAccount: entry.owner) else { return false }
    return try snapshot.entry(ServerKey.key(key)) != nil
  }

  /// Moves the end of an address on that is used, with a write once in half its life.
  func noteUse(of device: StoredDevice, _ snapshot: any StorageSnapshot) throws {
    guard let entry = try snapshot.entry(DeviceBinding.key(device.token)),
      Double((entry.expires ?? 0) - now) < limits.deviceLifetime * 500
    else { return }
    var next = entry
    next.revision += 1
    next.expires = now + Int64(limits.deviceLifetime * 1000)
    let saved = next
    writing.async { [storage] in
      var batch = WriteBatch()
      batch.expectedEntries[saved.key] = .some(entry.revision)
      batch.savedEntries = [saved]
      // Ended or moved on meanwhile: either is right.
      try? storage.commit(batch)
    }
  }

  /// Ends an account's addresses for events that stand on what has ended.
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

  /// Forgets what is cached of credentials and ends the polls and streams that stood on ended ones,
  /// after this process has ended some.
  func credentialsEnded() {
    sessions.forgetSessions()
    endUnboundListeners()
  }

  /// Ends polls and streams whose devices are bound to nothing any more.
  func endUnboundListeners() {
    let listening = notifications.ownedDevices
    guard !listening.isEmpty else { return }
    let ended = try? storage.read { snapshot in
      try listening.filter { token in
        guard let device = try snapshot.device(token: token) else { return true }
        return try !isBound(device, snapshot)
      }
    }
    // Where the storage does not answer, the next look ends them.
    for token in ended ?? [] { notifications.end(token) }
  }
}
