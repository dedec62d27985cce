import Foundation

/// A difference between an object in a context and its stored row.
///
/// There are two cases. If another context of the coordinator has saved the object since, the
/// coordinator's cache has the newer values: they are the `cachedSnapshot`, and there is no
/// `persistedSnapshot`. If another process, for example, has written to the store, the
/// `cachedSnapshot` has the values as they were read, and the `persistedSnapshot` the newer ones.
///
/// Snapshots have all attributes and to-one relationships, these as `NSManagedObjectID`; nil is
/// `NSNull`.
open class NSMergeConflict: NSObject {
  /// The object that was to be saved; it has the app's values.
  public let sourceObject: NSManagedObject
  /// The values that the object had before the app's changes.
  public let objectSnapshot: [String: Any]?
  /// The values in the coordinator's cache; nil where the row is known to be deleted.
  public let cachedSnapshot: [String: Any]?
  /// The values in the store, where they were written without this coordinator.
  public let persistedSnapshot: [String: Any]?
  /// The version of the newer row; 0 where it was deleted.
  public let newVersionNumber: Int
  /// The version of the row that the context read.
  public let oldVersionNumber: Int
  /// The row in the store, for merge policies.
  var persistedRow: Row?

  /// Creates a conflict.
  public init(
    source srcObject: NSManagedObject,
    newVersion newvers: Int,
    oldVersion oldvers: Int,
    cachedSnapshot cachesnap: [String: Any]?,
    persistedSnapshot persnap: [String: Any]?
  ) {
    sourceObject = srcObject
    newVersionNumber = newvers
    oldVersionNumber = oldvers
    cachedSnapshot = cachesnap
    persistedSnapshot = persnap
    objectSnapshot = srcObject.snapshot.map(srcObject.namedValues)
    super.init()
  }

  open override var description: String {
    let (old, new) =
      persistedSnapshot == nil
      ? ("object snapshot = \(objectSnapshot ?? [:])", "cached row = \(cachedSnapshot ?? [:])")
      : ("cached row = \(cachedSnapshot ?? [:])", "database row = \(persistedSnapshot ?? [:])")
    return "NSMergeConflict for NSManagedObject with objectID '\(sourceObject.objectID)' with "
      + "oldVersion = \(oldVersionNumber) and newVersion = \(newVersionNumber) and old \(old) "
      + "and new \(new)"
  }
}

/// A violated uniqueness constraint.
open class NSConstraintConflict: NSObject {
  /// The names of the properties whose values must be unique together.
  public let constraint: [String]
  /// The duplicate values.
  public let constraintValues: [String: Any]
  /// The object that is already stored with the values.
  public let databaseObject: NSManagedObject?
  /// The values of the object in the store.
  public let databaseSnapshot: [String: Any]?
  /// The objects that were to be saved.
  public let conflictingObjects: [NSManagedObject]
  /// The values of the objects that were to be saved.
  public let conflictingSnapshots: [[AnyHashable: Any]]

  /// Creates a conflict.
  public init(
    constraint contraint: [String],
    database databaseObject: NSManagedObject?,
    databaseSnapshot: [AnyHashable: Any]?,
    conflicting conflictingObjects: [NSManagedObject],
    conflictingSnapshots: [Any]
  ) {
    constraint = contraint
    self.databaseObject = databaseObject
    self.databaseSnapshot = databaseSnapshot.map { snapshot in
      Dictionary(
        snapshot.compactMap { key, value in (key.base as? String).map { ($0, value) } },
        uniquingKeysWith: { first, _ in first }
      )
    }
    self.conflictingObjects = conflictingObjects
    self.conflictingSnapshots = conflictingSnapshots.compactMap { $0 as? [AnyHashable: Any] }
    constraintValues = conflictingObjects.first?.dictionaryWithValues(forKeys: contraint) ?? [:]
    super.init()
  }

  /// Creates a conflict without objects.
  public override convenience init() {
    self.init(
      constraint: [],
      database: nil,
      databaseSnapshot: nil,
      conflicting: [],
      conflictingSnapshots: []
    )
  }

  open override var description: String {
    "NSConstraintConflict for constraint \(constraint): database: "
      + "\(databaseObject.map { "\($0.objectID)" } ?? "(null)"), conflictedObjects: "
      + "\(conflictingObjects.map(\.objectID))"
  }
}
