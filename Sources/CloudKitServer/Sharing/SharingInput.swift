import CloudKitWebServices

/// What sharing adds to what `records/modify` is decided on.
struct SharingInput: Sendable {
  var container: String
  var environment: ContainerEnvironment
  /// Whose database it is.
  var owner: SharePerson?
  var zoneNames: [ZoneNumber: String] = [:]
  /// What the caller sees, where the database is somebody else's.
  var views: [ZoneNumber: ZoneView]?
  /// What hangs below records that may come into a share, leave it or move, with all below that.
  var childrenByKey: [RecordKey: LoadedChild] = [:]
  /// Everything in a share that ends.
  var members: [RecordKey: [StoredDeparture]] = [:]
  /// The shares of a zone in which one is made.
  var shares: [ZoneNumber: [StoredRecord]] = [:]
  /// Who is meant by what they are invited with.
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

/// Where records stand after a batch, as far as it can change that.
struct Placing {
  /// By record: its share, nil outside of any.
  var places: [RecordKey: String?] = [:]
  /// Records that are not saved but come into a share or leave one.
  var moves: [Move] = []
  /// Records above others that were followed up to their roots.
  var checkedAncestors: Set<RecordKey> = []

  struct Move {
    var key: RecordKey
    var type: String
    var old: Membership?
    var share: String?
  }
}

extension RecordDictionary {
  /// The type; the archived documentation spells that of shares in another way.
  var sharedRecordType: String? {
    guard let recordType else { return nil }
    guard recordType.utf8.count == ShareDictionary.recordType.utf8.count else { return recordType }
    return recordType.lowercased() == ShareDictionary.recordType
      ? ShareDictionary.recordType : recordType
  }
}
