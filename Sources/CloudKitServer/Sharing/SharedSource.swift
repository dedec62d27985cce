import CloudKitWebServices

/// The source of a file's download URL in a shared database: the record, and the URL's reader.
///
/// The URL ends with the reader's participation, with the share, and when the record leaves it.
struct SharedSource: Codable, Hashable, Sendable {
  var zone: ZoneNumber
  var record: String
  var reader: ReaderID
  /// The ID of the invitation by which a reader who has not joined saw the record.
  var invitation: String?

  private enum CodingKeys: String, CodingKey {
    case zone = "z"
    case record = "n"
    case reader = "u"
    case invitation = "i"
  }

  init(_ key: RecordKey, reader: ReaderID, invitation: String? = nil) {
    zone = key.zone
    record = key.name
    self.reader = reader
    self.invitation = invitation
  }

  /// Whether the reader may still read the record.
  func isReadable(in partition: PartitionID, _ snapshot: any StorageSnapshot) throws -> Bool {
    let key = RecordKey(zone: zone, name: record)
    let zoneShare = RecordKey(zone: zone, name: ShareDictionary.zoneShareName)
    let found = try snapshot.records(in: partition, keys: [key, zoneShare])
    guard let record = found[key], !record.isDeleted,
      try !snapshot.isEnded(zone, in: partition)
    else { return false }
    var share = found[zoneShare]
    if share?.isDeleted != false, let name = record.membership?.share {
      let key = RecordKey(zone: zone, name: name)
      share = try snapshot.records(in: partition, keys: [key])[key]
    }
    guard let share, !share.isDeleted, let state = try share.decodedSharing()?.state else {
      return false
    }
    guard case .user(let user) = reader else { return state.publicPermission.canRead }
    if state.permission(of: user).canRead { return true }
    // A user who has not joined yet sees the root of the share in its invitation, or by its link.
    if let invitation,
      state.participants.contains(where: { $0.id == invitation && $0.status == .invited })
    {
      return true
    }
    return state.publicPermission.canRead
      && !state.participations.contains { $0.user == user }
  }
}

/// The shares by which an upload URL for another owner's database was issued.
///
/// The URL ends when its user may write in none of them.
struct SharedUpload: Codable, Hashable, Sendable {
  var zone: ZoneNumber
  var shares: [String]

  private enum CodingKeys: String, CodingKey {
    case zone = "z"
    case shares = "s"
  }

  /// Any of them suffices; a URL has room for a few.
  private static let mostShares = 4

  init(_ zone: ZoneNumber, _ view: ZoneView) {
    self.zone = zone
    shares = Array(
      view.permissions.filter { $0.value.canWrite }.keys.sorted().prefix(Self.mostShares)
    )
  }

  func isWritable(
    by user: String,
    in partition: PartitionID,
    _ snapshot: any StorageSnapshot
  ) throws -> Bool {
    guard try !snapshot.isEnded(zone, in: partition) else { return false }
    return try snapshot.shares(
      in: partition,
      keys: shares.map { RecordKey(zone: zone, name: $0) }
    ) { share in
      try !share.isDeleted
        && share.decodedSharing()?.state?.permission(of: user).canWrite == true
    }.contains(true)
  }
}
