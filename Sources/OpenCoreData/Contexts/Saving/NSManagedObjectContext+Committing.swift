import Foundation

/// A store failed to commit its part of a save.
struct StoreCommitFailure: Error {
  let binding: StoreBinding
  let cause: any Error
}

/// Commits a save to one store or to several.
///
/// SQLite cannot commit two files atomically, but close to it: every store has written everything
/// before the first one commits, so that conflicts, violated constraints and full disks are
/// detected before any commit. What remains is the failure of a commit itself after another store's
/// commit; then the committed part counts as saved, and the error is
/// `NSPersistentStoreIncompleteSaveError`.
extension NSManagedObjectContext {
  typealias Commits = [(SavePlan, RowCommit)]

  func commit(_ plans: [SavePlan], _ coordinator: NSPersistentStoreCoordinator) throws {
    // All contexts lock stores in one order, or two of them could deadlock. Custom stores commit
    // first, while all others can still roll back.
    let wanted = plans.filter { !$0.changes.isEmpty }
      .sorted {
        ($0.binding.isCustom ? 1 : 0, $0.binding.number)
          < ($1.binding.isCustom ? 1 : 0, $1.binding.number)
      }
    var commits: Commits = []
    guard let first = wanted.first else { return finishSave(commits, coordinator) }
    // A save into a removed store would be lost without an error.
    guard wanted.allSatisfy({ $0.binding.rows != nil }) else { throw removedStoreError }
    var current = first.binding
    saveCount += 1
    // Commits are announced even if a later store fails, once no store is locked.
    let announcements = CommitAnnouncements()
    do {
      defer { announcements.send() }
      try commit(wanted[...], &commits, &current, announcements)
    } catch {
      guard !commits.isEmpty else { throw StoreCommitFailure(binding: current, cause: error) }
      throw incomplete(commits, of: wanted, coordinator, error)
    }
    finishSave(commits, coordinator)
  }

  private func commit(
    _ plans: ArraySlice<SavePlan>,
    _ commits: inout Commits,
    _ current: inout StoreBinding,
    _ announcements: CommitAnnouncements
  ) throws {
    guard let plan = plans.first else { return }
    // The store was removed while this save waited for another store's lock.
    guard let rows = rows(of: plan.binding) else { throw removedStoreError }
    current = plan.binding
    let rest = plans.dropFirst()
    if plan.binding.isCustom {
      commits.append((plan, try commit(plan, to: rows)))
      try commit(rest, &commits, &current, announcements)
    } else {
      let made = try rows.commit(plan.changes, announcements) {
        try commit(rest, &commits, &current, announcements)
      }
      commits.append((plan, made))
    }
  }

  /// Marks the committed objects as saved; the others keep their pending changes.
  private func incomplete(
    _ commits: Commits,
    of plans: [SavePlan],
    _ coordinator: NSPersistentStoreCoordinator,
    _ cause: any Error
  ) -> NSError {
    let done = Set(commits.map { ObjectIdentifier($0.0.binding) })
    // The next save handles these objects the same way.
    let waiting = unsaved.take { object in
      object.binding.map { !done.contains(ObjectIdentifier($0)) } ?? true
    }
    finishSave(commits, coordinator)
    unsaved.restore(waiting)
    let failed = plans.filter { !done.contains(ObjectIdentifier($0.binding)) }
    return CoreDataError.make(
      NSPersistentStoreIncompleteSaveError,
      "Some stores were saved, and then another could not be: \(cause)",
      [
        NSAffectedStoresErrorKey: failed.compactMap(\.binding.persistentStore),
        NSAffectedObjectsErrorKey: waiting.objects,
        NSUnderlyingErrorKey: CoreDataError.facade(cause),
      ]
    )
  }
}
