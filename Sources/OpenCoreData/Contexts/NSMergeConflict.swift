import Foundation

/// A difference between what a context knows of an object and what the store has.
open class NSMergeConflict: NSObject {
  /// The object that was to be saved.
  public let sourceObject: NSManagedObject
  /// The object's values as the context has them.
  public let objectSnapshot: [String: Any]?
  /// The values as they were read last.
  public let cachedSnapshot: [String: Any]?
  /// The values as the store has them; nil where the row is gone.
  public let persistedSnapshot: [String: Any]?
  /// The version of the row in the store; 0 where it is gone.
  public let newVersionNumber: Int
  /// The version that was read.
  public let oldVersionNumber: Int
  /// The row in the store, for the policies.
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
    objectSnapshot =
      srcObject.isFault
      ? nil
      : srcObject.dictionaryWithValues(
        forKeys: srcObject.template.layout.attributes.map(\.name)
      )
    super.init()
  }

  open override var description: String {
    "NSMergeConflict (\(type(of: self))) for NSManagedObject (\(sourceObject.objectID)) with "
      + "oldVersion = \(oldVersionNumber) and newVersion = \(newVersionNumber) and old object "
      + "snapshot = \(objectSnapshot ?? [:]) and new cached row = \(persistedSnapshot ?? [:])"
  }
}

/// Values that must be unique and are not.
open class NSConstraintConflict: NSObject {
  /// The names of the properties that must be unique together.
  public let constraint: [String]
  /// The values that occur twice.
  public let constraintValues: [String: Any]
  /// The object that is in the store already.
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
}
