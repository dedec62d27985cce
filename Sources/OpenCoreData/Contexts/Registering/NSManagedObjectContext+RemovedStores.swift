import Foundation

/// Objects whose store was removed from the coordinator.
extension NSManagedObjectContext {
  /// Called on any thread after a store was removed.
  ///
  /// The objects leave at once where the calling thread works on the context's queue, and in a block of the
  /// queue otherwise. A save or a turn in progress ends first: it has lists of objects.
  func storeWasRemoved(_ binding: StoreBinding) {
    // Which thread uses a context without a queue is not known.
    guard concurrencyType != .confinementConcurrencyType else { return }
    if lane.isCurrent, !isSaving, !turnState.isProcessing { return forgetObjects(of: binding) }
    lane.async { [handle] in
      guard let context = handle.object else { return }
      context.turn { context.forgetObjects(of: binding) }
    }
  }

  /// Removes the objects of a removed store from this context and from its children.
  ///
  /// An object with changes stays: the next save, which cannot write them, throws an error. They leave with a
  /// rollback or a reset.
  private func forgetObjects(of binding: StoreBinding) {
    if readSessionBinding === binding { endReading() }
    incrementalRows[binding.number] = nil
    fetchBatches.removeAll { $0.binding === binding }
    sharedMembers.removeAll()
    invalidate(registry.objects.filter { $0.binding === binding && !$0.isPending })
    for child in children { child.storeWasRemoved(binding) }
  }

  /// Forgets objects that can no longer be read, and notifies the handlers of the context's changes.
  func invalidate(_ objects: [NSManagedObject]) {
    guard !objects.isEmpty else { return }
    for object in objects {
      forget(object)
      object.becomeInvalid()
      object.noteState()
    }
    let isEmpty = unsaved.isEmpty && registry.objects.isEmpty
    if isEmpty { undoRecorder?.forgetAll() } else { undoRecorder?.forgetSteps() }
    NotificationCenter.default.post(
      name: .NSManagedObjectContextObjectsDidChange,
      object: self,
      userInfo: isEmpty
        ? [NSInvalidatedAllObjectsKey: objects.map(\.objectID)]
        : [NSInvalidatedObjectsKey: Set(objects)]
    )
  }
}
