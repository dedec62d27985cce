import Foundation

/// A zone in requests and replies.
package struct ZoneDictionary: Codable, Hashable, Sendable {
  package var zoneID: ZoneID
  /// The zone's newest change token, opaque.
  package var syncToken: String?
  /// Whether batches in this zone may be atomic.
  package var atomic: Bool?
  package var deleted: Bool?
  /// Whether its owner can share the whole zone.
  package var isEligibleForZoneShare: Bool?
  /// Whether its owner can share hierarchies of its records.
  package var isEligibleForHierarchicalShare: Bool?
  /// The share of the whole zone, as the root of another share has one.
  package var share: ReferenceValue?
  /// The reason of a deletion, for clients with the capability header.
  package var `extension`: ErrorExtension?

  package init(
    zoneID: ZoneID,
    syncToken: String? = nil,
    atomic: Bool? = nil,
    deleted: Bool? = nil,
    isEligibleForZoneShare: Bool? = nil,
    isEligibleForHierarchicalShare: Bool? = nil,
    share: ReferenceValue? = nil,
    extension: ErrorExtension? = nil
  ) {
    self.zoneID = zoneID
    self.syncToken = syncToken
    self.atomic = atomic
    self.deleted = deleted
    self.isEligibleForZoneShare = isEligibleForZoneShare
    self.isEligibleForHierarchicalShare = isEligibleForHierarchicalShare
    self.share = share
    self.extension = `extension`
  }
}
