import CloudKitWebServices

/// The values about sharing on which the decision of `records/modify` depends.
struct SharingInput: Sendable {
  var container: String
  var environment: ContainerEnvironment
  /// The owner of the database.
  var owner: SharePerson?
  var zoneNames: [ZoneNumber: String] = [:]
  var access: DatabaseAccess
  /// All records below those that may be added to a share, leave it or move.
  var childrenByKey: [RecordKey: LoadedChild] = [:]
  /// All records in a share that ends.
  var members: [RecordKey: [StoredDeparture]] = [:]
  /// The names of the shares of a zone that is shared as a whole, more than the request can delete if it has
  /// as many.
  var shares: [ZoneNumber: [String]] = [:]
  /// The users with the contacts of invitations.
  var people: [LookupInfo: SharePerson] = [:]
  var makeID: @Sendable () -> String = { "" }
  var makeGUID: @Sendable () -> String = { "" }
}

/// A record below one that may move.
struct LoadedChild: Sendable {
  var child: StoredChild
  /// A share begins here.
  var isRoot: Bool
}

/// The shares of records after a batch, for records that it can change.
struct Placing {
  /// The share of each record; nil outside of any.
  var places: [RecordKey: String?] = [:]
  /// Records that are not saved but are added to a share or leave one.
  var moves: [Move] = []
  /// Records whose ancestors were checked up to their roots.
  var checkedAncestors: Set<RecordKey> = []

  struct Move {
    var key: RecordKey
    var type: String
    var old: Membership?
    var share: String?
  }
}

extension RecordDictionary {
  /// The type; the archived documentation spells that of shares differently.
  var sharedRecordType: String? {
    guard let recordType else { return nil }
    guard recordType.utf8.count == ShareDictionary.recordType.utf8.count else { return recordType }
    return recordType.lowercased() == ShareDictionary.recordType
      ? ShareDictionary.recordType : recordType
  }
}
