/// The to-ones that delete rules have cleared in a child context, with the deleted objects that they
/// referred to.
///
/// A save of the child sets the references in the parent, whose own rules clear them: so the parent can
/// restore them where a merge policy revokes the deletion.
struct ClearedReferences {
  private var owners: [ObjectIdentifier: [Int: NSManagedObject]] = [:]

  init(_ deleted: [NSManagedObject]) {
    for owner in deleted where !owner.state.contains(.vanished) {
      for (index, link) in owner.template.toOnes.enumerated() where Self.clears(link) {
        if let member = owner.registeredToOne(at: index) { note(member, link, owner) }
      }
      for (index, link) in owner.template.toManys.enumerated() where Self.clears(link) {
        for member in owner.toManyStorage(ifTouched: index)?.members.items ?? [] {
          note(member, link, owner)
        }
      }
    }
  }

  private static func clears(_ link: ObjectTemplate.Link) -> Bool {
    link.hasInverse && !link.slot.inverseIsToMany && link.slot.deleteRule == .nullifyDeleteRule
  }

  /// Notes a member whose reference a nullify rule cleared.
  ///
  /// A reference that the app cleared itself is not noted, because its owner no longer has the member. A member that
  /// another owner's cascade deleted is noted too: it is restored with that owner.
  private mutating func note(
    _ member: NSManagedObject,
    _ link: ObjectTemplate.Link,
    _ owner: NSManagedObject
  ) {
    guard !member.state.contains(.fault) else { return }
    owners[ObjectIdentifier(member), default: [:]][link.inverseIndex] = owner
  }

  /// The destination of a to-one; if a delete rule has cleared it, the deleted object.
  func destination(of member: NSManagedObject, at index: Int) -> NSManagedObject? {
    member.toOne(at: index) ?? owners[ObjectIdentifier(member)]?[index]
  }
}
