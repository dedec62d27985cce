import CloudKitWebServices

/// The share of a short ID, and the caller's participation.
struct LocatedShare: Sendable {
  var guid: StoredShortGUID
  var row: StoredZone
  var counter: ChangeNumber
  var share: StoredRecord
  var state: ShareState
  var root: StoredRecord?
  var person: SharePerson?

  /// The caller's entry, or the public one for everyone with the link.
  var participant: StoredParticipant? { person.flatMap { state.participant($0) } }
}
