import CloudKitWebServices

/// The source of a file's download URL in a shared database: the record, and the URL's reader.
///
/// The URL ends with the reader's participation, with the share, and when the record leaves it.
struct SharedSource: Codable, Hashable, Sendable {
  var zone: ZoneNumber
  var record: String
  /// The user's record name, or a visitor's name; empty for a caller who is not signed in.
  var reader: String

  private enum CodingKeys: String, CodingKey {
    case zone = "z"
    case record = "n"
    case reader = "u"
  }

  init(_ key: RecordKey, reader: String) {
    zone = key.zone
    record = key.name
    self.reader = reader
  }

  /// Whether the reader may still read the record.
  func isReadable(in partition: PartitionID, _ snapshot: any StorageSnapshot) throws -> Bool {
    let key = RecordKey(zone: zone, name: record)
    let zoneShare = RecordKey(zone: zone, name: ShareDictionary.zoneShareName)
    let found = try snapshot.records(in: partition, keys: [key, zoneShare])
    guard let record = found[key], !record.isDeleted else { return false }
    var share = found[zoneShare]
    if share?.isDeleted != false, let name = record.membership?.share {
      let key = RecordKey(zone: zone, name: name)
      share = try snapshot.records(in: partition, keys: [key])[key]
    }
    guard let share, !share.isDeleted, let state = try share.decodedSharing()?.state else {
      return false
    }
    if reader.isEmpty || PublicVisit.isReader(reader) { return state.publicPermission.canRead }
    if state.permission(of: reader).canRead { return true }
    // A user who has not joined yet sees the root of the share in its invitation.
    return !state.participations.contains { $0.user == reader }
  }
}
