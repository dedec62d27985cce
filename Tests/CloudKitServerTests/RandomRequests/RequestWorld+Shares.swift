import CloudKitWebServices
import Foundation

@testable import CloudKitServer

/// The owner shares records, and the guest joins and leaves.
extension RequestWorld {
  static func shareName(_ root: String) -> String { "share-\(root)" }

  func share(_ root: String, in zone: String) async throws {
    let name = Self.shareName(root)
    let canShare = zones[zone]?.records[root] != nil && zones[zone]?.shares[name] == nil
    let owner = devices[0].person
    do {
      try await owner.share(
        root,
        name,
        zone: ZoneID(zoneName: zone),
        with: [.invited("bob", .readWrite)]
      )
      try require(canShare, "\(root) was shared again, or is not there")
    } catch let error as ErrorDictionary {
      try require(!canShare, "\(root) cannot be shared: \(error)")
      return try await checkNotifications(from: 0, owner: false, guest: false)
    }
    zones[zone]?.shares[name] = ModelZone.ModelShare(root: root)
    // The root is saved with the reference to its share.
    let saved = try await owner.lookup(root, zone: ZoneID(zoneName: zone))
    zones[zone]?.records[root] = ModelRecord(saved)
    try await checkNotifications(from: 0, owner: true, guest: nil)
  }

  func join(_ name: String, in zone: String) async throws {
    guard let share = zones[zone]?.shares[name], share.isInvited, !share.isJoined else { return }
    let record = try await devices[0].person.lookup(name, zone: ZoneID(zoneName: zone))
    try await devices[Self.guest].person.accept(record)
    zones[zone]?.shares[name]?.isJoined = true
    counts["joined", default: 0] += 1
    try await checkNotifications(from: nil, owner: nil, guest: nil)
  }

  /// The guest leaves the share by deleting its record; the owner's deletion ends it.
  func endShare(_ name: String, in zone: String, by device: Int) async throws {
    guard let share = zones[zone]?.shares[name] else { return }
    guard device != Self.guest || share.isJoined else { return }
    let results = try await devices[device].person.modify(
      [.make(.forceDelete, name, recordType: nil)],
      in: devices[device].scope,
      zone: devices[device].zoneID(zone)
    )
    try require(results[0].error == nil, "the share \(name) does not end")
    if device == Self.guest {
      zones[zone]?.shares[name]?.isJoined = false
      zones[zone]?.shares[name]?.isInvited = false
    } else {
      zones[zone]?.shares[name] = nil
      // The root is saved without the reference to its share.
      let saved = try await devices[0].person.lookup(share.root, zone: ZoneID(zoneName: zone))
      zones[zone]?.records[share.root] = ModelRecord(saved)
    }
    try await checkNotifications(from: nil, owner: nil, guest: nil)
  }
}
