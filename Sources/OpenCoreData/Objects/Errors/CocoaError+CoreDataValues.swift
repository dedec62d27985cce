import Foundation

extension CocoaError {
  /// The objects that the error is about.
  public var affectedObjects: [AnyObject]? { userInfo[NSAffectedObjectsErrorKey] as? [AnyObject] }

  /// The stores that the error is about.
  public var affectedStores: [AnyObject]? { userInfo[NSAffectedStoresErrorKey] as? [AnyObject] }

  /// The conflicts that a save ran into.
  public var persistentStoreSaveConflicts: [NSMergeConflict]? {
    userInfo[NSPersistentStoreSaveConflictsErrorKey] as? [NSMergeConflict]
  }

  /// The object that failed validation.
  public var validationObject: Any? { userInfo[NSValidationObjectErrorKey] }

  /// The name of the property that failed validation.
  public var validationKey: String? { userInfo[NSValidationKeyErrorKey] as? String }

  /// The value that failed validation.
  public var validationValue: Any? { userInfo[NSValidationValueErrorKey] }

  /// The predicate that a value failed.
  public var validationPredicate: NSPredicate? {
    userInfo[NSValidationPredicateErrorKey] as? NSPredicate
  }
}
