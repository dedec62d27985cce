/// Objects and links as plain values: the contents of a store, or the state of a context.
///
/// A link represents both sides of a relationship, so inverses always agree.
struct ReferenceGraph: Equatable {
  typealias Relationship = GraphSchema.Relationship

  struct Entry: Equatable {
    let kind: String
    var name: String?
    var rank: Int?
  }

  struct Link: Hashable {
    /// The objects by side of the pair.
    var ends: [Int]
  }

  /// A relationship of an object.
  struct Place: Hashable {
    let object: Int
    let relationship: Relationship
  }

  var objects: [Int: Entry] = [:]
  private(set) var links = [Set<Link>](repeating: [], count: GraphSchema.pairs.count)
  private var orders: [Place: [Int]] = [:]

  func destinations(_ object: Int, _ relationship: Relationship) -> [Int] {
    if relationship.description.isOrdered {
      return orders[Place(object: object, relationship: relationship)] ?? []
    }
    return links[relationship.pair].compactMap { link in
      link.ends[relationship.side] == object ? link.ends[1 - relationship.side] : nil
    }.sorted()
  }

  func destination(_ object: Int, _ relationship: Relationship) -> Int? {
    destinations(object, relationship).first
  }

  mutating func link(_ object: Int, _ relationship: Relationship, _ other: Int) {
    guard links[relationship.pair].insert(Self.link(object, relationship, other)).inserted
    else { return }
    for (place, member) in Self.ends(object, relationship, other)
    where place.relationship.description.isOrdered {
      orders[place, default: []].append(member)
    }
  }

  mutating func unlink(_ object: Int, _ relationship: Relationship, _ other: Int) {
    guard links[relationship.pair].remove(Self.link(object, relationship, other)) != nil
    else { return }
    for (place, member) in Self.ends(object, relationship, other)
    where place.relationship.description.isOrdered {
      orders[place]?.removeAll { $0 == member }
    }
  }

  mutating func reorder(_ object: Int, _ relationship: Relationship, _ members: [Int]) {
    orders[Place(object: object, relationship: relationship)] = members
  }

  /// Removes an object and its links.
  mutating func remove(_ object: Int) {
    guard let entry = objects[object] else { return }
    for relationship in GraphSchema.relationshipsByKind[entry.kind] ?? [] {
      for other in destinations(object, relationship) { unlink(object, relationship, other) }
    }
    objects[object] = nil
  }

  private static func link(_ object: Int, _ relationship: Relationship, _ other: Int) -> Link {
    Link(ends: relationship.side == 0 ? [object, other] : [other, object])
  }

  private static func ends(
    _ object: Int,
    _ relationship: Relationship,
    _ other: Int
  ) -> [(Place, Int)] {
    [
      (Place(object: object, relationship: relationship), other),
      (Place(object: other, relationship: relationship.inverse), object),
    ]
  }
}
