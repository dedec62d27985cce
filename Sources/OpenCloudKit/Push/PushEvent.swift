import Foundation

/// What the push channel of a device tells.
package enum PushEvent: Hashable, Sendable {
  /// The channel was opened, or opened again after it broke: what happened meanwhile was not told.
  case connected
  /// Something changed in a database; the zone and the subscription are given where they are known.
  case changed(
    scope: CKDatabase.Scope?,
    zoneID: CKRecordZone.ID?,
    subscriptionID: CKSubscription.ID?
  )
}
