/// The domain of SQLite's own codes in an error's `userInfo`.
public let NSSQLiteErrorDomain = "NSSQLiteErrorDomain"
/// The key of the errors behind one that stands for several.
public let NSDetailedErrorsKey = "NSDetailedErrors"
/// The key of the object that failed validation.
public let NSValidationObjectErrorKey = "NSValidationErrorObject"
/// The key of the name of the property that failed validation.
public let NSValidationKeyErrorKey = "NSValidationErrorKey"
/// The key of the predicate that a value failed.
public let NSValidationPredicateErrorKey = "NSValidationErrorPredicate"
/// The key of the value that failed validation.
public let NSValidationValueErrorKey = "NSValidationErrorValue"
/// The key of the stores that an error is about.
public let NSAffectedStoresErrorKey = "NSAffectedStoresErrorKey"
/// The key of the objects that an error is about.
public let NSAffectedObjectsErrorKey = "NSAffectedObjectsErrorKey"
/// The key of the conflicts that a save ran into.
public let NSPersistentStoreSaveConflictsErrorKey = "conflictList"

/// A value is not valid.
public let NSManagedObjectValidationError = 1550
/// A uniqueness constraint is broken.
public let NSManagedObjectConstraintValidationError = 1551
/// Several values are not valid; see `NSDetailedErrorsKey`.
public let NSValidationMultipleErrorsError = 1560
/// A property that is not optional has no value.
public let NSValidationMissingMandatoryPropertyError = 1570
/// A relationship has too few destinations.
public let NSValidationRelationshipLacksMinimumCountError = 1580
/// A relationship has too many destinations.
public let NSValidationRelationshipExceedsMaximumCountError = 1590
/// An object cannot be deleted while a relationship leads on.
public let NSValidationRelationshipDeniedDeleteError = 1600
/// A number is too large.
public let NSValidationNumberTooLargeError = 1610
/// A number is too small.
public let NSValidationNumberTooSmallError = 1620
/// A date is too late.
public let NSValidationDateTooLateError = 1630
/// A date is too soon.
public let NSValidationDateTooSoonError = 1640
/// A date is not valid.
public let NSValidationInvalidDateError = 1650
/// A text is too long.
public let NSValidationStringTooLongError = 1660
/// A text is too short.
public let NSValidationStringTooShortError = 1670
/// A text does not match its pattern.
public let NSValidationStringPatternMatchingError = 1680
/// A URI is not valid.
public let NSValidationInvalidURIError = 1690
/// A context could not be locked.
public let NSManagedObjectContextLockingError = 132_000
/// A coordinator could not be locked.
public let NSPersistentStoreCoordinatorLockingError = 132_010
/// An object refers to one that does not exist.
public let NSManagedObjectReferentialIntegrityError = 133_000
/// A relationship leads into another store.
public let NSManagedObjectExternalRelationshipError = 133_010
/// Objects were changed in the store since they were read.
public let NSManagedObjectMergeError = 133_020
/// Objects have values that must be unique.
public let NSManagedObjectConstraintMergeError = 133_021
/// The type of a store is not known.
public let NSPersistentStoreInvalidTypeError = 134_000
/// A store is of another type than the given one.
public let NSPersistentStoreTypeMismatchError = 134_010
/// A store refused an entity or a table.
public let NSPersistentStoreIncompatibleSchemaError = 134_020
/// A store could not be saved.
public let NSPersistentStoreSaveError = 134_030
/// Some stores were saved and others were not.
public let NSPersistentStoreIncompleteSaveError = 134_040
/// A conflict during a save was not resolved.
public let NSPersistentStoreSaveConflictsError = 134_050
/// Something else went wrong.
public let NSCoreDataError = 134_060
/// A store could not complete an operation.
public let NSPersistentStoreOperationError = 134_070
/// A store could not be opened.
public let NSPersistentStoreOpenError = 134_080
/// A store was not reachable in time.
public let NSPersistentStoreTimeoutError = 134_090
/// A store does not support a type of request.
public let NSPersistentStoreUnsupportedRequestTypeError = 134_091
/// A store was written with another model.
///
/// **Differs from Core Data:** also the error of saves, fetches, batch and history requests on an
/// SQLite store that another process, or another coordinator, has migrated since it was opened;
/// contexts keep their unsaved changes. Fetches and faults notice the migration within 50
/// milliseconds, everything else at once.
public let NSPersistentStoreIncompatibleVersionHashError = 134_100
/// A migration failed.
public let NSMigrationError = 134_110
/// A migration broke a uniqueness constraint.
public let NSMigrationConstraintViolationError = 134_111
/// A migration was cancelled.
public let NSMigrationCancelledError = 134_120
/// The model of a store to migrate was not found.
public let NSMigrationMissingSourceModelError = 134_130
/// A mapping model was not found.
public let NSMigrationMissingMappingModelError = 134_140
/// The source of a migration failed.
public let NSMigrationManagerSourceStoreError = 134_150
/// The destination of a migration failed.
public let NSMigrationManagerDestinationStoreError = 134_160
/// A migration policy failed.
public let NSEntityMigrationPolicyError = 134_170
/// SQLite failed.
public let NSSQLiteError = 134_180
/// No mapping could be inferred between two models.
public let NSInferredMappingModelError = 134_190
/// An external record could not be read.
public let NSExternalRecordImportError = 134_200
/// The history before a token was deleted.
public let NSPersistentHistoryTokenExpiredError = 134_301
/// A referenced model was not found.
public let NSManagedObjectModelReferenceNotFoundError = 134_504
/// A staged migration needs a newer framework.
public let NSStagedMigrationFrameworkVersionMismatchError = 134_505
/// A staged migration would go backwards.
public let NSStagedMigrationBackwardMigrationError = 134_506
