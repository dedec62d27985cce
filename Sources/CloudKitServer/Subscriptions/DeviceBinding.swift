/// The credential to which a device's event URL is bound.
///
/// The URL is a capability: any client that has it can read notifications, which contain fields of
/// records. So it becomes invalid with the sign-in that it was issued to, or after long disuse.
struct DeviceBinding: Codable, Hashable, Sendable {
  /// The grant of a device that stays signed in; its sessions are replaced.
  var grant: String?
  /// The digest of the user token, without a grant.
  var session: String?

  static func key(_ device: String) -> DirectoryEntry.Key {
    DirectoryEntry.Key(.deviceBinding, device)
  }
}
