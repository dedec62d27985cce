/// The relationships of a deleted object that the delete rule nullify has taken apart.
///
/// Their destinations stay in memory: a deletion can be revoked, undone and rolled back, and the save removes the
/// object from join tables. Apps read none, as the destinations have none of this object, and get the former
/// ones from ``changedValuesForCurrentEvent()``.
extension NSManagedObject {
  /// Whether apps read no destination of a relationship.
  @inline(__always)
  final func isNullified(_ link: @autoclosure () -> ObjectTemplate.Link) -> Bool {
    guard state.contains(.propagated) else { return false }
    return !state.contains(.vanished) && link().slot.deleteRule == .nullifyDeleteRule
  }

  /// Marks the relationships as changed in this turn, for the handlers of its notification.
  final func markNullified() {
    for (index, link) in template.toOnes.enumerated()
    where link.slot.deleteRule == .nullifyDeleteRule {
      guard let rowIndex = link.slot.rowIndex, toOne(at: index) != nil else { continue }
      markChangedInTurn(rowIndex)
    }
    for (index, link) in template.toManys.enumerated()
    where link.slot.deleteRule == .nullifyDeleteRule {
      if !loadedToMany(at: index).hasNoMembers { markChangedInTurn(toMany: index) }
    }
  }

  /// The destination of a to-one as apps read it.
  @inline(__always)
  final func publicToOne(at index: Int) -> NSManagedObject? {
    isNullified(template.toOnes[index]) ? nil : toOne(at: index)
  }

  /// The members of a to-many as apps read them.
  final func publicMembers(at index: Int) -> [NSManagedObject] {
    isNullified(template.toManys[index]) ? [] : loadedToMany(at: index).members.items
  }

  /// Whether apps read an object among the members of a to-many.
  final func publicMembersContain(_ member: NSManagedObject, at index: Int) -> Bool {
    !isNullified(template.toManys[index]) && loadedToMany(at: index).contains(member)
  }
}
