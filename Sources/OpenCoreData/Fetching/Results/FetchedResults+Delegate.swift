import Foundation

extension FetchedResults {
  /// Replaces the list and reports the changes to the delegate.
  ///
  /// Objects that left are reported first, then sections that are empty now, new sections, and all
  /// other changes of objects. Apple's header has changes of sections before those of objects; suites
  /// that run on Apple's systems receive the deletion of a section after those of its objects, and
  /// its information without objects. A table view accepts either order.
  func notify(
    _ delegate: any NSFetchedResultsControllerDelegate,
    _ controller: NSFetchedResultsController<any NSFetchRequestResult>,
    _ changes: FetchedResultsChanges,
    _ old: SectionedResults,
    _ new: SectionedResults
  ) {
    if wantsDifferences {
      let before = list
      list = new
      delegate.controller(controller, didChangeContentWith: Self.difference(old, new, changes))
      if wantsDifferences { return }
      list = before
    }
    func send(_ change: FetchedResultsChanges.Change) {
      delegate.controller(
        controller,
        didChange: change.object,
        at: change.before,
        for: change.type,
        newIndexPath: change.after
      )
    }
    delegate.controllerWillChangeContent(controller)
    list = new
    for change in changes.changes where change.type == .delete { send(change) }
    for section in changes.deletedSections {
      let name = old.sections[section].name
      let info = FetchedResultsSectionInfo(name: name, indexTitle: indexTitle(name), members: [])
      delegate.controller(controller, didChange: info, atSectionIndex: section, for: .delete)
    }
    for section in changes.insertedSections {
      guard let info = sections?[section] else { continue }
      delegate.controller(controller, didChange: info, atSectionIndex: section, for: .insert)
    }
    for change in changes.changes where change.type != .delete { send(change) }
    delegate.controllerDidChangeContent(controller)
  }

  /// An update is a removal and an insertion of the same object.
  private static func difference(
    _ old: SectionedResults,
    _ new: SectionedResults,
    _ changes: FetchedResultsChanges
  ) -> CollectionDifference<NSManagedObjectID> {
    var steps: [CollectionDifference<NSManagedObjectID>.Change] = []
    for change in changes.changes {
      let identifier = change.object.objectID
      if let before = change.before {
        let partner = change.after?.item
        steps.append(.remove(offset: before.item, element: identifier, associatedWith: partner))
      }
      if let after = change.after {
        let partner = change.before?.item
        steps.append(.insert(offset: after.item, element: identifier, associatedWith: partner))
      }
    }
    // The steps are valid by construction: each index occurs once on either side.
    return CollectionDifference(steps)
      ?? new.objects.map(\.objectID).difference(
        from: old.objects.map(\.objectID)
      )
  }
}
