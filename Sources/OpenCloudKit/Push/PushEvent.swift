import Foundation

/// An event of a device's push channel.
package enum PushEvent: Hashable, Sendable {
  /// The channel was opened, or opened again after it broke: notifications in between may be lost.
  case connected
  /// A database changed; the zone and the subscription are given if they are known.
  case changed(
    scope: CKDatabase.Scope?,
    zoneID: CKRecordZone.ID?,
    subscriptionID: CKSubscription.ID?
  )
}
