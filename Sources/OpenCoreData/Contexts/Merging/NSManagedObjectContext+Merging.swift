import Effects
import Foundation
import Synchronization

/// Rows that other contexts or processes changed.
struct ChangedRows {
  var inserted: [ObjectKey] = []
  var updated: [ObjectKey] = []
  var deleted: [ObjectKey] = []
  /// Whether another process wrote them, so that the coordinator's cache may be out of date.
  var isForeign = false
  /// Whether the objects whose relationships the rows joined or left are among the updated ones.
  ///
  /// A context's save reports them; an import or a batch request reports the moved rows alone.
  var reportsOwners = false

  var isEmpty: Bool { inserted.isEmpty && updated.isEmpty && deleted.isEmpty }
}

extension NSManagedObjectContext {
  /// Implements `mergeChanges(fromContextDidSave:)`.
  func mergeSave(_ notification: Notification) {
    if concurrencyType == .mainQueueConcurrencyType { requireLane() }
    var rows = changedRows(in: notification.userInfo ?? [:])
    // A notification without a context, as from the history, may report changes of any process.
    if let saved = notification.object as? NSManagedObjectContext {
      rows.reportsOwners =
        Self.saveNames.contains(notification.name)
        && !saved.leavesOutOwners.load(ordering: .acquiring)
    } else {
      rows.isForeign = true
    }
    guard concurrencyType != .mainQueueConcurrencyType, !lane.isCurrent else { return merge(rows) }
    // Outside `perform`, the calling thread enters the lane, and waits for a block on another thread.
    performAndWait { merge(rows) }
  }

  private static let saveNames: Set<Notification.Name> = [
    .NSManagedObjectContextDidSave, .NSManagedObjectContextDidSaveObjectIDs,
  ]

  /// Merges changes that were made elsewhere into several contexts.
  ///
  /// The keys are those of save notifications; the values are objects, identifiers or their URLs.
  public class func mergeChanges(
    fromRemoteContextSave changeNotificationData: [AnyHashable: Any],
    into contexts: [NSManagedObjectContext]
  ) {
    for context in contexts {
      context.performAndWait {
        var rows = context.changedRows(in: changeNotificationData)
        rows.isForeign = true
        context.merge(rows)
      }
    }
  }

  private func changedRows(in userInfo: [AnyHashable: Any]) -> ChangedRows {
    var rows = ChangedRows()
    rows.inserted = keys(userInfo, &rows, [NSInsertedObjectsKey, NSInsertedObjectIDsKey])
    rows.updated = keys(
      userInfo,
      &rows,
      [
        NSUpdatedObjectsKey, NSUpdatedObjectIDsKey, NSRefreshedObjectsKey,
        NSRefreshedObjectIDsKey, NSInvalidatedObjectsKey, NSInvalidatedObjectIDsKey,
      ]
    )
    rows.deleted = keys(userInfo, &rows, [NSDeletedObjectsKey, NSDeletedObjectIDsKey])
    return rows
  }

  private func keys(
    _ userInfo: [AnyHashable: Any],
    _ rows: inout ChangedRows,
    _ names: [String]
  ) -> [ObjectKey] {
    var result: [ObjectKey] = []
    for name in names {
      let members: [Any]
      switch userInfo[name] {
      case let set as Set<NSManagedObject>: members = Array(set)
      case let set as Set<NSManagedObjectID>: members = Array(set)
      case let array as [Any]: members = array
      case let set as NSSet: members = set.allObjects
      case let set as Set<AnyHashable>: members = set.map(\.base)
      default: continue
      }
      for member in members {
        switch member {
        case let object as NSManagedObject: result.append(own(object.key, object.binding, &rows))
        case let identifier as NSManagedObjectID:
          result.append(own(identifier.key, identifier.binding, &rows))
        case let url as URL:
          let found = persistentStoreCoordinator?.managedObjectID(forURIRepresentation: url)
          if let found { result.append(found.key) }
        default: continue
        }
      }
    }
    return result.sorted { left, right in
      (left.reference.entityNumber, left.reference.key)
        < (right.reference.entityNumber, right.reference.key)
    }
  }

  /// The key of an identifier in this context's stores, also if another coordinator created it.
  private func own(
    _ key: ObjectKey,
    _ binding: StoreBinding?,
    _ rows: inout ChangedRows
  ) -> ObjectKey {
    guard let binding, let coordinator = persistentStoreCoordinator, !coordinator.holds(binding),
      let own = coordinator.binding(identifier: binding.identifier)
    else { return lasting(key) }
    rows.isForeign = true
    return ObjectKey(
      store: own.number,
      reference: own.adopted(key.reference, from: binding)
    )
  }

  /// Merges changed rows: inserted ones become faults, updated ones are refreshed and keep pending
  /// changes, deleted ones are removed.
  func merge(_ rows: ChangedRows) {
    guard !rows.isEmpty else { return }
    releaseGeneration()
    if rows.isForeign { forgetCachedRows(rows) }
    var changes = ChangedObjects()
    var unannounced = UnannouncedRows()
    changes.deleted = mergeDeletions(rows.deleted, &unannounced)
    changes.refreshed = mergeUpdates(rows.updated, &unannounced)
    if !rows.reportsOwners { showToOwners(unannounced.updated) }
    (changes.inserted, unannounced.inserted) = mergeInsertions(
      rows.inserted,
      showingToOwners: !rows.reportsOwners
    )
    processPendingChanges()
    if !changes.isEmpty {
      NotificationCenter.default.post(
        name: .NSManagedObjectContextObjectsDidChange,
        object: self,
        userInfo: changes.userInfo
      )
      NotificationCenter.default.post(
        name: .NSManagedObjectContextDidMergeChangesObjectIDs,
        object: self,
        userInfo: changes.mergedIdentifiersUserInfo
      )
    }
    postUnannounced(unannounced)
    notifyChildren(changes, unannounced, reportingOwners: rows.reportsOwners)
    for object in changes.deleted { forgetDeleted(object) }
    checkInvariants(unsaved.brokenInvariants(of: self))
  }

  private func forgetCachedRows(_ rows: ChangedRows) {
    // Inserted rows are members that cached relationships do not have.
    let keys = rows.inserted + rows.updated + rows.deleted
    for (store, keys) in Dictionary(grouping: keys, by: \.store) {
      persistentStoreCoordinator?.binding(number: store)?.rows?.forget(keys.map(\.reference))
    }
  }

  private func mergeDeletions(
    _ keys: [ObjectKey],
    _ unannounced: inout UnannouncedRows
  ) -> [NSManagedObject] {
    var result: [NSManagedObject] = []
    for key in keys {
      guard let object = registry.object(key) else {
        unannounced.deleted.append(key)
        continue
      }
      if !object.state.contains(.inserted) { result.append(object) }
    }
    removeFromRelationships(result)
    for object in result {
      unsaved.acceptDeletion(of: object)
      object.state.remove(.needsWillSave)
      registry.remove(object.key)
      noteState(of: object)
    }
    return result
  }

  func mergeUpdates(
    _ keys: [ObjectKey],
    _ unannounced: inout UnannouncedRows
  ) -> [NSManagedObject] {
    var result: [NSManagedObject] = []
    for key in keys {
      guard let object = registry.object(key) else {
        unannounced.updated.append(key)
        continue
      }
      guard !object.state.contains(.inserted), !object.state.contains(.deleted) else { continue }
      let before = object.snapshot
      object.forEachToMany { $0.unload() }
      if object.state.contains(.fault) {
        object.state.remove(.prefetched)
      } else if object.isPending {
        takeNewerRow(object)
      } else {
        object.turnIntoFault(keepingToManyChanges: true)
      }
      invalidateInverses(of: object, before: before)
      result.append(object)
    }
    return result
  }

  /// Adds rows without an object here to the relationships of their owners that are loaded here.
  func showToOwners(_ keys: [ObjectKey]) {
    for (store, keys) in Dictionary(grouping: keys, by: \.store) {
      guard let binding = persistentStoreCoordinator?.binding(number: store),
        !binding.isContextual, let rows = rows(of: binding)
      else { continue }
      let wanted = keys.map(\.reference).filter { reference in
        binding.template(number: reference.entityNumber)?.toOnes.contains(where: \.hasInverse)
          ?? false
      }
      do {
        for start in stride(from: 0, to: wanted.count, by: Self.rowsOfOnePortion) {
          let portion = wanted[start..<min(start + Self.rowsOfOnePortion, wanted.count)]
          for case .some(let row) in try rows.rows(Array(portion), .linksOnly) {
            showToOwners(row, binding)
          }
        }
      } catch {
        unloadInverses(of: wanted.compactMap { binding.template(number: $0.entityNumber) }, error)
      }
    }
  }

  /// The most rows without objects that a merge has in memory at once.
  static let rowsOfOnePortion = 500

  private func showToOwners(_ row: Row, _ binding: StoreBinding) {
    guard let template = binding.template(number: row.reference.entityNumber) else { return }
    for link in template.toOnes where link.hasInverse {
      guard let rowIndex = link.slot.rowIndex, case .reference(let owner) = row[rowIndex],
        let other = registeredObject(ObjectKey(store: binding.number, reference: owner))
      else { continue }
      unload(link, of: other)
    }
  }

  private func unload(_ link: ObjectTemplate.Link, of owner: NSManagedObject) {
    if link.slot.inverseIsToMany {
      owner.toManyStorage(ifTouched: link.inverseIndex)?.unload()
    } else {
      owner.invalidateToOne(at: link.inverseIndex)
    }
  }

  /// Unloads all relationships to which the changed rows may belong, because the rows could not be
  /// read.
  private func unloadInverses(of templates: [ObjectTemplate], _ error: any Error) {
    couldNotPrefetch("read the rows of a merge", error)
    var seen: Set<ObjectIdentifier> = []
    let links = templates.filter { seen.insert(ObjectIdentifier($0)).inserted }
      .flatMap { $0.toOnes.filter(\.hasInverse) }
    for object in registry.objects {
      for link in links
      where object.template.layout.isMemberOrSub(of: link.slot.destinationEntity) {
        unload(link, of: object)
      }
    }
  }

  /// Adopts the newer row and keeps pending changes, as `refresh(_:mergeChanges:)` does.
  private func takeNewerRow(_ object: NSManagedObject) {
    do {
      if case .row(let row) = try row(for: object) {
        object.forgetEqualChanges()
        object.announcingChanges { object.take(row) }
      }
    } catch {
      couldNotRead("refresh '\(object.objectID)'", error)
    }
  }

  /// Unloads the to-many relationships in memory whose inverse is a changed to-one column.
  func invalidateInverses(of object: NSManagedObject, before: Row?) {
    var now = object.state.contains(.prefetched) || !object.isFault ? object.snapshot : nil
    if now == nil {
      do {
        now = try row(for: object).found
      } catch {
        return unloadInverses(of: [object.template], error)
      }
    }
    for link in object.template.toOnes where link.hasInverse {
      guard let rowIndex = link.slot.rowIndex else { continue }
      let old = before?[rowIndex]
      let new = now?[rowIndex]
      guard before == nil || old != new else { continue }
      for case .reference(let reference)? in [old, new] {
        guard let other = registeredObject(reference, from: object) else { continue }
        unload(link, of: other)
      }
    }
  }

  // MARK: Other contexts' saves

  /// Called on any thread after another context's commit; the merge is queued on the lane.
  func enqueueMerge(_ rows: ChangedRows) {
    lane.async { [handle] in
      guard let context = handle.object else { return }
      context.turn { context.merge(rows) }
    }
  }
}

extension NSManagedObject {
  /// Invalidates a one-to-one whose other side changed in the store.
  final func invalidateToOne(at index: Int) {
    guard !isPending else { return }
    turnIntoFault()
  }
}
