import Foundation

/// Determines the changes of each turn of a context, and registers them with the undo manager.
///
/// It keeps the values of objects with unsaved changes from the end of the last turn; all other
/// objects had the values of their rows. Changing an object therefore costs the same with and
/// without an undo manager.
final class UndoRecorder {
  /// The state of an object with unsaved changes at the end of a turn.
  private struct Image {
    /// Retained, so that no other object gets its address, by which the image is found.
    let object: NSManagedObject
    let changed: SlotSet
    let isInserted: Bool
    let values: [RowValue]
    let objectValues: [Int: Any]?
    let toOnes: [NSManagedObject?]
    var toManys: [ToManyChanges?]

    init(_ object: NSManagedObject) {
      self.object = object
      changed = object.changed
      isInserted = object.state.contains(.inserted)
      values = object.values
      objectValues = object.objectValues
      toOnes = object.toOneObjects
      toManys = object.toManyStorages.map { $0.map(ToManyChanges.init) }
    }
  }

  let manager: UndoManager
  private unowned let context: NSManagedObjectContext
  /// The identity of the context, for use while it is deallocated.
  private let identifier: ObjectIdentifier
  private var images: [ObjectIdentifier: Image] = [:]
  /// The order of ordered to-manys before this turn changed it.
  private var orders: [ObjectIdentifier: [NSManagedObject]] = [:]
  private var observer: (any NSObjectProtocol)?
  private var suspensions = 0
  private let holders = UndoHolders()

  init(_ manager: UndoManager, _ context: NSManagedObjectContext) {
    self.manager = manager
    self.context = context
    identifier = ObjectIdentifier(context)
    let changed = context.unsaved.inserted.objects + context.unsaved.updated.objects
    for object in changed { images[ObjectIdentifier(object)] = Image(object) }
    // A checkpoint ends the current step: changes before and after it are in different groups.
    observer = NotificationCenter.default.addObserver(
      forName: .NSUndoManagerCheckpoint,
      object: manager,
      queue: nil
    ) { [weak context] _ in context?.processPendingChanges() }
  }

  deinit {
    if let observer { NotificationCenter.default.removeObserver(observer) }
    manager.removeActions(of: identifier)
  }

  /// Runs work that is not recorded for undo.
  func suspended<Result>(_ body: () throws -> Result) rethrows -> Result {
    suspensions += 1
    defer { suspensions -= 1 }
    return try body()
  }

  /// Discards the image of an object that leaves the context.
  func forgetImage(of object: NSManagedObject) {
    images[ObjectIdentifier(object)] = nil
  }

  /// Discards the images after a save: all objects have the values of their rows.
  func forgetImages() {
    images.removeAll(keepingCapacity: true)
  }

  /// Discards all state: earlier changes can no longer be undone.
  func forgetAll() {
    images = [:]
    orders = [:]
    forgetSteps()
  }

  /// Discards what can be undone, and keeps what is known of the changes that are not saved.
  func forgetSteps() { manager.removeAllActions(withTarget: context) }

  /// Called before an ordered to-many changes.
  func keepOrder(of storage: ToManyStorage) {
    guard storage.isLoaded, orders[ObjectIdentifier(storage)] == nil else { return }
    orders[ObjectIdentifier(storage)] = storage.members.items
  }

  /// Called where changes of a to-many turn out to be stored: it no longer differs from the store by
  /// them, though this turn did not change it.
  func forget(_ settled: ToManyChanges, of object: NSManagedObject, at index: Int) {
    let identifier = ObjectIdentifier(object)
    guard let toManys = images[identifier]?.toManys, !toManys.isEmpty, let known = toManys[index]
    else { return }
    images[identifier]?.toManys[index] = ToManyChanges(
      added: without(known.added, settled.added),
      removed: without(known.removed, settled.removed)
    )
  }

  private func without(_ left: [NSManagedObject], _ right: [NSManagedObject]) -> [NSManagedObject] {
    let known = Set(right.map { ObjectIdentifier($0) })
    return left.filter { !known.contains(ObjectIdentifier($0)) }
  }

  /// Whether a deleted object may be restored.
  func canRevive(_ object: NSManagedObject) -> Bool { holders.holds(object) }

  // MARK: Recording

  /// Called at the end of a turn, while objects still have its changes.
  func record(_ objects: [NSManagedObject]) {
    defer { orders.removeAll(keepingCapacity: true) }
    if suspensions == 0, manager.isUndoRegistrationEnabled {
      let step = step(objects)
      if !step.isEmpty {
        step.hold(holders)
        register(step, .backward)
      }
    }
    for object in objects {
      // A fault has an image too: its to-manys may have been changed from the other side.
      images[ObjectIdentifier(object)] = object.isPending ? Image(object) : nil
    }
  }

  private func step(_ objects: [NSManagedObject]) -> UndoStep {
    let step = UndoStep()
    for object in objects where !object.state.contains(.vanished) {
      let isNew = object.state.contains(.touchedInsert)
      if object.state.contains(.touchedDelete) {
        // An object that was inserted and deleted in one turn is not recorded.
        if isNew { continue }
        // The values are loaded before the row is deleted.
        object.fireIfFault()
        step.deleted.append(object)
        if context.unsaved.deletedByCascade.contains(ObjectIdentifier(object)) {
          step.cascaded.insert(ObjectIdentifier(object))
        }
      } else if isNew {
        step.inserted.append(object)
        continue
      }
      let change = change(of: object)
      if !change.isEmpty { step.changes.append(change) }
    }
    return step
  }

  private func change(of object: NSManagedObject) -> UndoStep.Change {
    var change = UndoStep.Change(object: object)
    let image = images[ObjectIdentifier(object)]
    // A deleted object reports relationships that its delete rules nullified, and has them still.
    let isDeleted = object.state.contains(.deleted)
    for slot in object.state.contains(.fault) ? [] : object.changedInTurn.slots
    where !isDeleted || object.changed.contains(slot) {
      let before = value(of: object, at: slot, image)
      let after = object.undoValue(at: slot)
      let isSame =
        before.row == after.row && !object.isTransient(rowIndex: slot)
        && before.destination === after.destination
      if !isSame {
        change.values.append(UndoStep.ValueChange(slot: slot, before: before, after: after))
      }
    }
    for index in object.changedToManysInTurn.slots
    where !isDeleted || object.changedToManys.contains(index) {
      guard let storage = object.toManyStorage(ifTouched: index) else { continue }
      let known = image.flatMap { $0.toManys.isEmpty ? nil : $0.toManys[index] }
      let members = members(of: storage, before: known ?? ToManyChanges(), at: index)
      if !members.added.isEmpty || !members.removed.isEmpty || members.orderBefore != nil {
        change.toManys.append(members)
      }
    }
    return change
  }

  private func value(
    of object: NSManagedObject,
    at slot: Int,
    _ image: Image?
  ) -> UndoStep.SlotValue {
    let count = object.template.layout.attributes.count
    if let image, image.isInserted || image.changed.contains(slot), slot < image.values.count {
      return UndoStep.SlotValue(
        row: image.values[slot],
        box: slot < count ? image.objectValues?[slot] : nil,
        destination: slot < count || image.toOnes.isEmpty ? nil : image.toOnes[slot - count]
      )
    }
    return UndoStep.SlotValue(row: object.snapshot?[slot] ?? object.template.defaults[slot])
  }

  private func members(
    of storage: ToManyStorage,
    before: ToManyChanges,
    at index: Int
  ) -> UndoStep.ToManyChange {
    let after = ToManyChanges(storage)
    let order = orders[ObjectIdentifier(storage)]
    return UndoStep.ToManyChange(
      index: index,
      added: without(after.added, before.added) + without(before.removed, after.removed),
      removed: without(after.removed, before.removed) + without(before.added, after.added),
      orderBefore: order,
      orderAfter: order == nil ? nil : storage.members.items
    )
  }

  // MARK: Applying

  private func register(_ step: UndoStep, _ direction: UndoStep.Direction) {
    manager.registerUndo(withTarget: context) { context in
      context.undoRecorder?.apply(step, direction)
    }
  }

  /// Restores deleted objects and values, and removes inserted objects.
  private func apply(_ step: UndoStep, _ direction: UndoStep.Direction) {
    let (revived, removed) =
      direction == .backward ? (step.deleted, step.inserted) : (step.inserted, step.deleted)
    suspended {
      context.processPendingChanges()
      for object in revived { context.revive(object) }
      for object in revived { object.dropLostToOnes() }
      context.dropLostMembers(of: revived)
      for change in step.changes where change.object.context === context {
        change.apply(direction)
      }
      for object in removed {
        let isCascaded = direction == .forward && step.cascaded.contains(ObjectIdentifier(object))
        context.removeForUndo(object, isCascaded: isCascaded)
      }
      context.untracked {
        for object in revived { object.awake(fromSnapshotEvents: .undoDeletion) }
        for change in step.changes where change.object.context === context {
          change.object.awake(fromSnapshotEvents: .undoUpdate)
        }
        for object in removed where object.context === context {
          object.awake(fromSnapshotEvents: .undoInsertion)
        }
      }
      context.processPendingChanges()
    }
    register(step, direction.opposite)
  }
}

extension ToManyChanges {
  /// The members added to and removed from a to-many's stored members.
  fileprivate init(_ storage: ToManyStorage) {
    self.init(added: storage.added, removed: storage.removed.items)
  }
}
