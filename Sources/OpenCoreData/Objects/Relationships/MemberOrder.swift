/// Applies an order of an ordered relationship that may lack some of its members.
enum MemberOrder {
  /// Orders the members; those that the order lacks stay behind the members that they followed.
  static func order<Member: AnyObject>(
    of members: [Member],
    as wanted: [Member]
  ) -> [Member] {
    var present = Set<ObjectIdentifier>()
    for member in members { present.insert(ObjectIdentifier(member)) }
    let ordered = wanted.filter { present.contains(ObjectIdentifier($0)) }
    let known = Set(ordered.map { ObjectIdentifier($0) })
    // The members behind each member that the order names; nil: those before all of them.
    var followers: [ObjectIdentifier?: [Member]] = [:]
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
