import CloudKitWebServices

/// The role of a zone's reader: its owner, or a participant of shares in it.
enum Reader: Sendable {
  /// The database is the reader's own, or the public one.
  case owner
  /// The zone is another owner's: the reader sees what a view shows.
  case participant(ZoneView)

  func sees(_ record: StoredRecord) -> Bool {
    switch self {
    case .owner: true
    case .participant(let view): view.sees(record)
    }
  }

  /// Whether the reader may change or delete an existing record.
  func mayWrite(_ record: StoredRecord) -> Bool {
    switch self {
    case .owner: true
    case .participant(let view): view.permission(for: record).canWrite
    }
  }

  /// When a participant's participation in the whole zone began; tokens of an earlier one have expired.
  var wholeSince: ChangeNumber? {
    switch self {
    case .owner: nil
    case .participant(let view): view.wholeSince
    }
  }
}
