/// The order of an ordered relationship, where the one who ordered it did not know all members.
enum MemberOrder {
  /// Members in another order; those of which the order says nothing stay behind their neighbours.
  static func order(
    of members: [NSManagedObject],
    as wanted: [NSManagedObject]
  ) -> [NSManagedObject] {
    var present = Set<ObjectIdentifier>()
    for member in members { present.insert(ObjectIdentifier(member)) }
    let ordered = wanted.filter { present.contains(ObjectIdentifier($0)) }
    let known = Set(ordered.map { ObjectIdentifier($0) })
    // What follows each member that the order names; nil for what is before all of them.
    var followers: [ObjectIdentifier?: [NSManagedObject]] = [:]
    var last: ObjectIdentifier?
    for member in members {
      if known.contains(ObjectIdentifier(member)) {
        last = ObjectIdentifier(member)
      } else {
        followers[last, default: []].append(member)
      }
    }
    return (followers[nil] ?? [])
      + ordered.flatMap { [$0] + (followers[ObjectIdentifier($0)] ?? []) }
  }
}
