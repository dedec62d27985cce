/// A place within the links that wait for an object.
struct WaitingPlace: Hashable, Sendable {
  /// The record of the object.
  var record: String
  /// The record and the property of the last to-one link.
  var source = ""
  var property = ""
  /// The edges that are left, the last one first; nil while to-one links are.
  var edges: [Int64]?
}

/// Links that are set once the object that they lead to has been imported.
///
/// An album that was renamed after 100,000 photos were put into it follows them in the feed.
extension MirrorSession {
  /// The most links that one step of an import sets; a transaction has one or two of them.
  static let waitingLinkLimit = 250

  /// Sets the links and edges that waited for an object to be imported.
  package func linkWhatWaited(for name: String) throws {
    var place = WaitingPlace(record: name)
    var limit = Int.max
    _ = try linkWhatWaited(from: &place, &limit)
  }

  /// Sets what waited for some imported objects, up to a limit; the rest is left to ``linkArrived(_:limit:)``.
  func linkWhatWaited(for names: [String]) throws {
    var limit = Self.waitingLinkLimit
    for name in names {
      var place = WaitingPlace(record: name)
      if try !linkWhatWaited(from: &place, &limit) { try metadata.keepArrived(name) }
    }
  }

  /// Sets up to `limit` links that wait for objects which earlier transactions have imported, after a place; returns
  /// whether none is left.
  func linkArrived(_ place: inout WaitingPlace?, limit: Int) throws -> Bool {
    var limit = limit
    while let name = try metadata.arrivedRecords(limit: 1).first {
      var current = place ?? WaitingPlace(record: name)
      if current.record != name { current = WaitingPlace(record: name) }
      let isDone = try linkWhatWaited(from: &current, &limit)
      place = current
      guard isDone else { return false }
      try metadata.forgetArrived(name)
    }
    return true
  }

  /// Sets up to `limit` links that wait for an object, after a place, and lessens the limit; returns whether none is
  /// left.
  private func linkWhatWaited(from place: inout WaitingPlace, _ limit: inout Int) throws -> Bool {
    while place.edges == nil {
      guard limit > 0 else { return false }
      let count = min(limit, Self.waitingLinkLimit)
      let after = (place.source, place.property)
      let links = try metadata.linksParked(for: place.record, after: after, limit: count)
      for link in links {
        try set(link, to: place.record)
        (place.source, place.property) = (link.record, link.property)
      }
      limit -= links.count
      if links.count < count {
        place.edges = try metadata.edgesWaiting(for: place.record).reversed()
      }
    }
    while let id = place.edges?.last {
      guard limit > 0 else { return false }
      limit -= 1
      place.edges?.removeLast()
      guard let edge = try metadata.edge(id), !edge.isLinked, edge.pending != .delete else {
        continue
      }
      try link(edge)
      try sendRestored(edge.name)
    }
    return true
  }

  /// Sets a to-one link that waited for an object.
  private func set(_ link: ParkedLink, to name: String) throws {
    guard let source = try metadata.record(named: link.record),
      let reference = reference(of: source),
      let toOne = mapping.entity(named: source.entityName)?.toOne(link.property),
      let target = try destination(toOne, named: name)
    else { return }
    try metadata.unpark(record: link.record, property: link.property)
    // An edit made here in the meantime is kept, sent or not.
    guard !source.unconfirmed.contains(link.property),
      let row = try rows.row(reference), try leadsNowhere(row.values[toOne.index])
    else { return }
    try rows.update(reference, set: [toOne.index: .reference(target)])
    try writePresentNames(link.record)
    try markRestored(toOne, of: link.record, to: name)
  }

  /// Whether a to-one relationship is nil, or leads to a deleted object, as a delete rule without an action leaves it.
  private func leadsNowhere(_ value: RowValue) throws -> Bool {
    guard case .reference(let reference) = value else { return value.isNull }
    return try rows.row(reference) == nil
  }
}
