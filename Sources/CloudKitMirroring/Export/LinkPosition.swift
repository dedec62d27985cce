import Synchronization

/// Where the comparison of one object's links continues in the next write transaction.
///
/// It only saves time: the links may have changed before the position meanwhile, and a relationship counts as
/// compared after all of its links were in one transaction.
final class LinkPosition: Sendable {
  /// The last edge that was compared with the links, and the last link that was compared with the edges.
  struct Place: Hashable, Sendable {
    var edge = Int64.min
    var link = Int64.min
  }

  private struct Position {
    var record: String
    var relationship: String
    var place: Place
  }

  private let position = Mutex<Position?>(nil)

  subscript(links: RecordLinks) -> Place? {
    get {
      position.withLock { position in
        guard let position, position.record == links.record,
          position.relationship == links.relationship.name
        else { return nil }
        return position.place
      }
    }
    set {
      let new = newValue.map {
        Position(record: links.record, relationship: links.relationship.name, place: $0)
      }
      position.withLock { $0 = new }
    }
  }
}
