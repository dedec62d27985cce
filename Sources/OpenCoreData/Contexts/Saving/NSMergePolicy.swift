import Foundation

/// The kind of a merge policy.
public enum NSMergePolicyType: UInt, Sendable, Hashable {
  /// The save fails.
  case errorMergePolicyType = 0
  /// For each property, the value in the store wins.
  case mergeByPropertyStoreTrumpMergePolicyType = 1
  /// For each property, the value in memory wins.
  case mergeByPropertyObjectTrumpMergePolicyType = 2
  /// The whole object in memory wins.
  case overwriteMergePolicyType = 3
  /// The whole row in the store wins.
  case rollbackMergePolicyType = 4
}

/// Resolves conflicts with rows that were changed in the store since they were read.
///
/// ```swift
/// context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
/// post.title = "Ours"
/// try context.save()
/// ```
///
/// **Differs from Core Data:** where the store wins against a deletion, the effects of its delete rules
/// are revoked with it: in this context, in its children, and after a redo of the deletion. The objects are in
/// `NSRefreshedObjectsKey` of the notifications. A member that was moved to the owner is its member again. New
/// objects that were never saved stay deleted: they left the context when their deletion was
/// processed. An object whose row is written again loses its references to objects without a
/// row; the partner of a one-to-one refers to it again unless it was given another partner since.
open class NSMergePolicy: NSObject, @unchecked Sendable {
  // Sendable: immutable; subclasses that add state guard it.

  /// The kind of the policy.
  public let mergeType: NSMergePolicyType

  /// Creates a policy of a kind.
  public init(merge ty: NSMergePolicyType) {
    mergeType = ty
    super.init()
  }

  /// Fails the save; the app resolves the conflicts.
  public static let error = NSMergePolicy(merge: .errorMergePolicyType)
  /// For each property, the value in the store wins.
  public static let mergeByPropertyStoreTrump = NSMergePolicy(
    merge: .mergeByPropertyStoreTrumpMergePolicyType
  )
  /// For each property, the value in memory wins.
  public static let mergeByPropertyObjectTrump = NSMergePolicy(
    merge: .mergeByPropertyObjectTrumpMergePolicyType
  )
  /// The whole object in memory wins.
  public static let overwrite = NSMergePolicy(merge: .overwriteMergePolicyType)
  /// The whole row in the store wins.
  public static let rollback = NSMergePolicy(merge: .rollbackMergePolicyType)

  /// Resolves conflicts of any kind, or throws an error that carries them.
  open func resolve(mergeConflicts list: [Any]) throws {
    let locking = list.compactMap { $0 as? NSMergeConflict }
    let constraints = list.compactMap { $0 as? NSConstraintConflict }
    if !locking.isEmpty { try resolve(optimisticLockingConflicts: locking) }
    if !constraints.isEmpty { try resolve(constraintConflicts: constraints) }
  }

  /// Resolves conflicts with rows that were changed since they were read.
  open func resolve(optimisticLockingConflicts list: [NSMergeConflict]) throws {
    if mergeType == .errorMergePolicyType {
      throw CoreDataError.make(
        NSManagedObjectMergeError,
        "Could not merge changes: the objects were changed in the store since they were read.",
        [
          NSPersistentStoreSaveConflictsErrorKey: list,
          NSAffectedObjectsErrorKey: list.map(\.sourceObject),
        ]
      )
    }
    for conflict in list { try resolve(conflict) }
  }

  /// Resolves violations of uniqueness constraints.
  open func resolve(constraintConflicts list: [NSConstraintConflict]) throws {
    if mergeType == .errorMergePolicyType {
      throw CoreDataError.make(
        NSManagedObjectConstraintMergeError,
        "Could not merge changes: values that must be unique occur twice.",
        [NSPersistentStoreSaveConflictsErrorKey: list]
      )
    }
    for conflict in list { resolve(conflict) }
  }

  // MARK: Optimistic locking

  private func resolve(_ conflict: NSMergeConflict) throws {
    let object = conflict.sourceObject
    guard let context = object.context else { return }
    try context.untracked {
      if let row = try conflict.persistedRow ?? context.newestRow(of: conflict).found {
        resolve(object, row, context)
      } else {
        try resolveVanished(object, context)
      }
    }
  }

  private func resolve(_ object: NSManagedObject, _ row: Row, _ context: NSManagedObjectContext) {
    if object.isDeleted {
      if mergeType == .rollbackMergePolicyType
        || mergeType == .mergeByPropertyStoreTrumpMergePolicyType
      {
        return context.revokeDeletion(of: object, onto: row)
      }
      object.rebase(onto: row)
      context.propagateAgain(object)
      return
    }
    // An object that was only to be compared has no changes to keep.
    guard object.isPending else { return object.rebase(onto: row) }
    switch mergeType {
    case .mergeByPropertyStoreTrumpMergePolicyType:
      context.retractingInverses(of: object) { object.rebase(onto: row, storeWins: true) }
    case .mergeByPropertyObjectTrumpMergePolicyType:
      object.rebase(onto: row)
    case .overwriteMergePolicyType:
      object.rebaseWhole(onto: row)
    case .rollbackMergePolicyType, .errorMergePolicyType:
      context.retractingInverses(of: object) {
        context.discardChanges(of: object)
        object.rebase(onto: row)
      }
    }
    // Another context may have changed the members that were read here.
    object.forEachToMany { $0.unload() }
    object.awake(fromSnapshotEvents: .mergePolicy)
  }

  /// Resolves a conflict with a deleted row: deletes the object too, or writes its row again.
  private func resolveVanished(
    _ object: NSManagedObject,
    _ context: NSManagedObjectContext
  ) throws {
    if object.isDeleted {
      object.state.insert(.vanished)
      return
    }
    switch mergeType {
    case .mergeByPropertyObjectTrumpMergePolicyType, .overwriteMergePolicyType:
      try context.reinsert(object)
    default:
      context.acceptDeletion(of: object)
    }
  }

  // MARK: Constraints

  /// Trump policies keep one object: the stored one is deleted, or replaces the new one.
  ///
  /// If the store wins, an object that is already stored is never deleted because of a value that
  /// it was given here: it keeps its stored values.
  private func resolve(_ conflict: NSConstraintConflict) {
    switch mergeType {
    case .mergeByPropertyObjectTrumpMergePolicyType, .overwriteMergePolicyType:
      guard let stored = conflict.databaseObject, let winner = conflict.conflictingObjects.last
      else { return keepLast(of: conflict.conflictingObjects) }
      // The stored row is kept with the new values, so that references to it stay valid.
      if winner.isInserted {
        for slot in winner.template.layout.attributes
        where stored.template.layout.slot(named: slot.name) != nil && !slot.isDerived {
          // The values themselves, not what accessors of the class make of them.
          let value = winner.attributeValue(at: slot.index)
          if mergeType == .overwriteMergePolicyType || value != nil {
            _ = stored.setModeledValue(value, forKey: slot.name)
          }
        }
        winner.context?.moveRelationships(from: winner, to: stored)
        for object in conflict.conflictingObjects { object.context?.delete(object) }
      } else {
        stored.context?.delete(stored)
      }
    default:
      if conflict.databaseObject != nil {
        for object in conflict.conflictingObjects where object.isInserted {
          object.context?.delete(object)
        }
        for object in conflict.conflictingObjects where !object.isInserted {
          object.context?.discardChanges(of: object)
        }
      } else {
        keepLast(of: conflict.conflictingObjects)
      }
    }
  }

  private func keepLast(of objects: [NSManagedObject]) {
    let storeWins =
      mergeType == .mergeByPropertyStoreTrumpMergePolicyType
      || mergeType == .rollbackMergePolicyType
    for object in objects.dropLast() {
      if storeWins, !object.isInserted {
        object.context?.discardChanges(of: object)
      } else {
        object.context?.delete(object)
      }
    }
  }
}

/// The policy by which a save fails where there are conflicts.
public var NSErrorMergePolicy: AnyObject { NSMergePolicy.error }
/// The policy by which the value in the store wins, for each property.
public var NSMergeByPropertyStoreTrumpMergePolicy: AnyObject {
  NSMergePolicy.mergeByPropertyStoreTrump
}
/// The policy by which the value in memory wins, for each property.
public var NSMergeByPropertyObjectTrumpMergePolicy: AnyObject {
  NSMergePolicy.mergeByPropertyObjectTrump
}
/// The policy by which the whole object in memory wins.
public var NSOverwriteMergePolicy: AnyObject { NSMergePolicy.overwrite }
/// The policy by which the whole row in the store wins.
public var NSRollbackMergePolicy: AnyObject { NSMergePolicy.rollback }
