/// The part of a database that the caller may read, besides the roles of a public one's schema.
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

  /// The caller's role in a zone.
  func reader(of zone: ZoneNumber) -> Reader {
    switch self {
    case .whole: .owner
    case .shared(let views): .participant(views[zone] ?? ZoneView(of: []))
    }
  }

  func sees(_ record: StoredRecord) -> Bool { reader(of: record.key.zone).sees(record) }
}
