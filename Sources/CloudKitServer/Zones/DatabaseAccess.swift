/// What the caller may see of a database, beside the roles of a public one's schema.
enum DatabaseAccess: Sendable {
  /// The caller's own database, or the public one.
  case whole
  /// Another owner's database: what the views of its zones show. A zone without a view shows nothing.
  case shared([ZoneNumber: ZoneView])

  var isShared: Bool {
    switch self {
    case .whole: false
    case .shared: true
    }
  }

  /// The caller's view of a zone; nil only if the whole database is the caller's.
  func view(of zone: ZoneNumber) -> ZoneView? {
    switch self {
    case .whole: nil
    case .shared(let views): views[zone] ?? ZoneView(of: [])
    }
  }

  func sees(_ record: StoredRecord) -> Bool {
    view(of: record.key.zone).map { $0.sees(record) } ?? true
  }
}
