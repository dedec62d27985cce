import Foundation
import OpenCoreData
import WatershedSQLite

/// Runs steps on Core Data.
extension RealWorld {
  /// Runs an applicable step; the reference has the state before and after it.
  func perform(_ line: ProgramLine, _ reference: ReferenceWorld) throws -> Outcome {
    let index = line.context
    let outcome = try turn(index) { context in
      switch line.step {
      case .save: return try save(context, index)
      case .failingSave:
        let outcome = try withoutHistory { try save(context, index) }
        if case .failed = outcome { return .failed(ProgramStep.anyCode) }
        return outcome
      case .rollback: context.rollback()
      case .reset:
        context.reset()
        objects[index] = [:]
      case .refreshAll: context.refreshAllObjects()
      case .process, .look: context.processPendingChanges()
      case .mergeAgain: mergeAgain(context)
      case .release: release(context, index)
      case .batchInsert, .batchRank, .batchDelete: try batch(line.step, context)
      case .fetch(let kind): _ = try fetch(kind, context)
      case .undo: if context.undoManager?.canUndo ?? false { context.undo() }
      case .redo: if context.undoManager?.canRedo ?? false { context.redo() }
      // It is no change that can be undone.
      case .refresh: change(line.step, context, index)
      default:
        context.undoManager?.beginUndoGrouping()
        change(line.step, context, index)
        context.undoManager?.endUndoGrouping()
      }
      return .done
    }
    try settle(line, outcome, reference)
    return outcome
  }

  /// Makes the contexts read again, as the layout requires.
  private func settle(_ line: ProgramLine, _ outcome: Outcome, _ reference: ReferenceWorld) throws {
    let index = line.context
    var isSaved = false
    if case .saved = outcome { isSaved = true }
    switch layout.kind {
    case .conflicting:
      guard isSaved || [.rollback, .reset, .refreshAll].contains(line.step) else { return }
      turn(index) { $0.refreshAllObjects() }
      // Everything is loaded, so that later saves of other contexts are not seen.
      _ = differenceOfObjects(reference.contexts[index], index)
    case .child:
      let isBehind =
        line.step == .save ? isSaved && !reference.contexts[1].hasChanges : !line.step.isRead
      guard index == 0, isBehind else { return }
      turn(1) { $0.refreshAllObjects() }
    case .merging where layout.sharesFile:
      guard isSaved else { return }
      for other in contexts.indices { try readHistory(other, merging: other != index) }
    case .single, .merging, .undoing: return
    }
  }

  /// Merges the saves of other coordinators from the file's history.
  private func readHistory(_ index: Int, merging: Bool) throws {
    try turn(index) { context in
      let request = NSPersistentHistoryChangeRequest.fetchHistory(after: tokens[index])
      let result = try context.execute(request) as? NSPersistentHistoryResult
      let transactions = result?.result as? [NSPersistentHistoryTransaction] ?? []
      for transaction in transactions {
        if merging { context.mergeChanges(fromContextDidSave: transaction.objectIDNotification()) }
        tokens[index] = transaction.token
      }
    }
  }

  /// Merges the insertions of all saves, and reads what the context says that it has received.
  private func mergeAgain(_ context: NSManagedObjectContext) {
    context.processPendingChanges()
    let received = saves.received(by: context) {
      NSManagedObjectContext.mergeChanges(
        fromRemoteContextSave: [NSInsertedObjectIDsKey: Array(numbers.keys.filter(isSaved))],
        into: [context]
      )
    }
    // An object without a row becomes a deletion of this context when it is read.
    for object in received { _ = object.value(forKey: "name") }
  }

  private func isSaved(_ identifier: NSManagedObjectID) -> Bool { !identifier.isTemporaryID }

  /// Runs a batch request and merges its changes into all contexts.
  private func batch(_ step: ProgramStep, _ context: NSManagedObjectContext) throws {
    context.processPendingChanges()
    var key = NSInsertedObjectIDsKey
    var changed: [NSManagedObjectID] = []
    switch step {
    case .batchInsert(let number, let kind):
      let request = NSBatchInsertRequest(entityName: kind, objects: [[:]])
      request.resultType = .objectIDs
      changed =
        (try context.execute(request) as? NSBatchInsertResult)?.result as? [NSManagedObjectID] ?? []
      for identifier in changed { note(identifier, number) }
    case .batchRank(let kind, let rank):
      let request = NSBatchUpdateRequest(entityName: kind)
      request.propertiesToUpdate = ["rank": rank]
      request.resultType = .updatedObjectIDsResultType
      changed =
        (try context.execute(request) as? NSBatchUpdateResult)?.result as? [NSManagedObjectID] ?? []
      key = NSUpdatedObjectIDsKey
    case .batchDelete(let kind):
      let request = NSBatchDeleteRequest(
        fetchRequest: NSFetchRequest<any NSFetchRequestResult>(entityName: kind)
      )
      request.resultType = .resultTypeObjectIDs
      changed =
        (try context.execute(request) as? NSBatchDeleteResult)?.result as? [NSManagedObjectID] ?? []
      key = NSDeletedObjectIDsKey
    default: return
    }
    NSManagedObjectContext.mergeChanges(fromRemoteContextSave: [key: changed], into: contexts)
  }

  private func change(_ step: ProgramStep, _ context: NSManagedObjectContext, _ index: Int) {
    switch step {
    case .insert(let number, let kind):
      let object = NSEntityDescription.insertNewObject(forEntityName: kind, into: context)
      objects[index][number] = object
      note(object.objectID, number)
    case .name(let number, let name): object(number, index)?.setValue(name, forKey: "name")
    case .rank(let number, let rank): object(number, index)?.setValue(rank, forKey: "rank")
    case .delete(let number):
      if let object = object(number, index) { context.delete(object) }
    case .refresh(let number, let merging):
      if let object = object(number, index) { context.refresh(object, mergeChanges: merging) }
    case .toOne(let number, let key, let other):
      object(number, index)?.setValue(other.flatMap { object($0, index) }, forKey: key)
    case .add(let number, let key, let other):
      guard let owner = object(number, index), let member = object(other, index) else { return }
      if isOrdered(owner, key) {
        owner.mutableOrderedSetValue(forKey: key).add(member)
      } else {
        owner.mutableSetValue(forKey: key).add(member)
      }
    case .remove(let number, let key, let other):
      guard let owner = object(number, index), let member = object(other, index) else { return }
      if isOrdered(owner, key) {
        owner.mutableOrderedSetValue(forKey: key).remove(member)
      } else {
        owner.mutableSetValue(forKey: key).remove(member)
      }
    case .replace(let number, let key, let others):
      guard let owner = object(number, index) else { return }
      let members = others.compactMap { object($0, index) }
      owner.setValue(
        isOrdered(owner, key) ? NSOrderedSet(array: members) : NSSet(array: members),
        forKey: key
      )
    default: break
    }
  }

  private func isOrdered(_ object: NSManagedObject, _ key: String) -> Bool {
    object.entity.relationshipsByName[key]?.isOrdered ?? false
  }

  /// Runs a block while every save fails, because the history's table is missing.
  private func withoutHistory<Result>(_ body: () throws -> Result) throws -> Result {
    guard let folder else { return try body() }
    let path = folder.url.appendingPathComponent("Store.sqlite").path
    func rename(_ table: String, _ name: String) throws {
      let connection = try SQLiteConnection(path: path, mode: .readWrite)
      try connection.execute("PRAGMA legacy_alter_table = ON")
      try connection.execute("ALTER TABLE \(table) RENAME TO \(name)")
    }
    try rename("ATRANSACTION", "ATRANSACTION_AWAY")
    let result = Swift.Result { try body() }
    try rename("ATRANSACTION_AWAY", "ATRANSACTION")
    return try result.get()
  }

  private func release(_ context: NSManagedObjectContext, _ index: Int) {
    context.processPendingChanges()
    let kept = context.insertedObjects
    objects[index] = objects[index].filter { kept.contains($0.value) }
  }

  func fetch(_ kind: String, _ context: NSManagedObjectContext) throws -> Set<Int> {
    context.processPendingChanges()
    return Set(try context.fetch(NSFetchRequest<NSManagedObject>(entityName: kind)).map(number))
  }

  private func save(_ context: NSManagedObjectContext, _ index: Int) throws -> Outcome {
    saves.last = nil
    _ = ProgramObject.takeNotes(of: context)
    // The notification has the identifiers that the save assigns.
    for object in context.insertedObjects { objects[index][number(object)] = object }
    do {
      try context.save()
    } catch {
      // Objects have permanent identifiers from the first attempt on.
      noteIdentifiers()
      return .failed((error as NSError).code)
    }
    context.undoManager?.removeAllActions()
    guard let saved = saves.last else { return .done }
    let noted = ProgramObject.takeNotes(of: context)
    guard noted == saved else { return .failed(ProgramStep.wrongStates) }
    // A save without changes has a notification without objects.
    guard saved != NotedObjects() else { return .done }
    noteIdentifiers()
    let gone = saved.deleted
    defer { objects[index] = objects[index].filter { !gone.contains($0.value) } }
    return .saved(
      ReferenceWorld.SavedNumbers(
        inserted: Set(saved.inserted.map(number)),
        updated: Set(saved.updated.map(number)),
        deleted: Set(saved.deleted.map(number))
      )
    )
  }
}
