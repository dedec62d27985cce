/// Invariants of the devices and waits; checked after a device is registered or removed.
extension NotificationHub.State {
  /// The most devices that are compared: the comparison reads all of them at each registration.
  private static let comparedDevices = 200

  /// The broken invariants, a sentence each.
  func brokenInvariants() -> [String] {
    var broken: [String] = []
    if !cancelled.isSubset(of: beginning) {
      broken.append("a wait was cancelled before its registration that is not about to begin")
    }
    if nextDeadline > deadlines.count {
      broken.append("the next deadline is beyond the last")
    }
    guard devices.count <= Self.comparedDevices else { return broken }
    var owned: [NotificationHub.Owner: Set<String>] = [:]
    for (token, device) in devices {
      if let owner = device.owner { owned[owner, default: []].insert(token) }
    }
    if owned != byOwner { broken.append("the lists of owners are not those of the devices") }
    return broken
  }
}
