import CloudKitWebServices

/// The changes of a zone as one reader sees them: records and deletions, in one order.
///
/// Everything is ordered by change numbers. For a participant of a hierarchical share, the records
/// that existed when they joined changed at that moment, in sequence, and so did the records that
/// they lost when they left: a position is a change number and a place within it.
struct ZoneFeed {
  struct Position: Hashable, Comparable, Codable {
    var change: ChangeNumber
    /// Zero for an ordinary change; otherwise the order among the records of joining or leaving.
    var place: ChangeNumber = .zero

    static let start = Position(change: .zero)

    /// The position after all changes with a number.
    static func end(of change: ChangeNumber) -> Position {
      Position(change: change, place: ChangeNumber(.max))
    }

    static func < (left: Position, right: Position) -> Bool {
      (left.change, left.place) < (right.change, right.place)
    }

    private enum CodingKeys: String, CodingKey {
      case change = "c"
      case place = "p"
    }
  }

  struct Item {
    enum Content {
      case record(RecordRow)
      case departed(RecordKey, type: String)
      /// It was deleted before the reader joined; its name is not revealed.
      case hidden
    }

    var position: Position
    var content: Content
    /// The bytes of a deletion's row, which count in the storage's limit for a page.
    var bytesRead = 0
  }

  /// A range of positions; both ends are exclusive.
  struct Range {
    var after: Position
    var before: Position?
    var isReversed = false
    /// Whether the reader has no token, and so needs no deletions.
    var isFirst = false
    var limit: Int
    /// Records beyond this many bytes need not be read, except the first.
    var bytes = Int.max

    /// The changes in a zone within the range.
    func changes(of zone: ZoneNumber) -> ChangeRange {
      ChangeRange(
        zone: zone,
        after: after.change,
        through: before.map { ChangeNumber($0.change.rawValue - 1) },
        isReversed: isReversed,
        includesTombstones: !isFirst,
        limit: limit,
        bytes: bytes
      )
    }
  }

  let snapshot: any StorageSnapshot
  let partition: PartitionID
  let zone: ZoneNumber
  let reader: Reader

  /// Up to `limit` items in order, newest first if reversed.
  func items(_ range: Range) throws -> [Item] {
    guard case .participant(let view) = reader else { return try wholeZone(range, since: nil) }
    if view.isWhole { return try wholeZone(range, since: view.wholeSince ?? .zero) }
    var merge = FeedMerge(range)
    // In the order of joining, which is about that of the feed.
    let participations = view.participations
    for participation in range.isReversed ? participations.reversed() : participations {
      merge.add(try items(of: participation, in: view, merge.range))
    }
    return merge.items
  }

  // MARK: A whole zone

  private func wholeZone(_ range: Range, since joined: ChangeNumber?) throws -> [Item] {
    try snapshot.changes(in: partition, range.changes(of: zone)).map { record in
      let position = Position(change: record.change)
      guard record.isDeleted else { return Item(position: position, content: .record(record)) }
      let isHidden = joined.map { record.change <= $0 } ?? false
      return Item(
        position: position,
        content: isHidden ? .hidden : .departed(record.key, type: record.type),
        bytesRead: record.size
      )
    }
  }

  // MARK: Participation in a share

  private func items(
    of participation: ZoneView.Participation,
    in view: ZoneView,
    _ range: Range
  ) throws -> [Item] {
    let isOpen = participation.left == nil && view.permissions[participation.share] != nil
    var items: [Item] = []
    if isOpen {
      items += try presentAtJoin(participation, range)
      items += try changes(participation, range)
    }
    guard !range.isFirst else { return items }
    items += try departures(participation, range)
    if let left = participation.left { items += try removedOnLeave(participation, left, range) }
    return items
  }

  /// The records that existed when the participant joined.
  private func presentAtJoin(
    _ participation: ZoneView.Participation,
    _ range: Range
  ) throws -> [Item] {
    guard let span = places(at: participation.joined, range, through: participation.joined) else {
      return []
    }
    return try snapshot.members(in: partition, span.range(zone, participation.share, range)).map {
      record in
      Item(
        position: Position(change: participation.joined, place: record.seen),
        content: .record(record)
      )
    }
  }

  /// The records that were added or changed since.
  private func changes(_ participation: ZoneView.Participation, _ range: Range) throws -> [Item] {
    guard let span = numbers(from: participation.joined, range, through: nil) else { return [] }
    return try snapshot.members(in: partition, span.range(zone, participation.share, range)).map {
      record in
      Item(
        position: Position(change: record.seen),
        content: .record(record)
      )
    }
  }

  /// The records that left the share during the participation.
  private func departures(_ participation: ZoneView.Participation, _ range: Range) throws -> [Item]
  {
    guard let span = numbers(from: participation.joined, range, through: participation.left) else {
      return []
    }
    return try snapshot.departures(in: partition, span.range(zone, participation.share, range)).map
    {
      departed($0, at: Position(change: $0.exited))
    }
  }

  /// The records that existed when the participant left, and that they no longer see.
  private func removedOnLeave(
    _ participation: ZoneView.Participation,
    _ left: ChangeNumber,
    _ range: Range
  ) throws -> [Item] {
    guard let span = places(at: left, range, through: left) else { return [] }
    return try snapshot.present(
      in: partition,
      at: left,
      span.range(zone, participation.share, range)
    ).map { departed($0, at: Position(change: left, place: $0.entered)) }
  }

  private func departed(_ departure: StoredDeparture, at position: Position) -> Item {
    Item(
      position: position,
      content: .departed(departure.key, type: departure.type)
    )
  }

  // MARK: Ranges of the storage

  /// A range in the storage: after one number, through another.
  private struct Span {
    var after: ChangeNumber
    var through: ChangeNumber?

    func range(_ zone: ZoneNumber, _ share: String, _ range: Range) -> ShareRange {
      ShareRange(
        zone: zone,
        share: share,
        after: after,
        through: through,
        isReversed: range.isReversed,
        limit: range.limit,
        bytes: range.bytes
      )
    }
  }

  /// The places of a moment that are within the range.
  private func places(
    at moment: ChangeNumber,
    _ range: Range,
    through last: ChangeNumber
  ) -> Span? {
    var span = Span(after: .zero, through: last)
    if range.after.change > moment { return nil }
    if range.after.change == moment {
      // The ordinary change of the moment comes before its places.
      span.after = range.after.place
    }
    if let before = range.before {
      if before.change < moment { return nil }
      if before.change == moment {
        guard before.place > .zero else { return nil }
        span.through = ChangeNumber(before.place.rawValue - 1)
      }
    }
    return span
  }

  /// The ordinary changes after a moment that are within the range.
  private func numbers(
    from joined: ChangeNumber,
    _ range: Range,
    through last: ChangeNumber?
  ) -> Span? {
    var span = Span(after: max(joined, range.after.change), through: last)
    if let before = range.before {
      // Places of a moment come after its ordinary change.
      let end = before.place > .zero ? before.change : ChangeNumber(before.change.rawValue - 1)
      span.through = min(span.through ?? end, end)
    }
    if let through = span.through, through <= span.after { return nil }
    return span
  }
}
