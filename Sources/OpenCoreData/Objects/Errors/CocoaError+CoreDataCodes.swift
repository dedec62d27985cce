import Foundation

// Core Data's codes under `CocoaError`, each by its short and by its older name.

extension CocoaError.Code {
  /// Something else went wrong.
  public static var coreData: CocoaError.Code {
    CocoaError.Code(rawValue: NSCoreDataError)
  }
  /// Something else went wrong.
  public static var coreDataError: CocoaError.Code {
    CocoaError.Code(rawValue: NSCoreDataError)
  }
  /// A migration policy failed.
  public static var entityMigrationPolicy: CocoaError.Code {
    CocoaError.Code(rawValue: NSEntityMigrationPolicyError)
  }
  /// A migration policy failed.
  public static var entityMigrationPolicyError: CocoaError.Code {
    CocoaError.Code(rawValue: NSEntityMigrationPolicyError)
  }
  /// An external record could not be read.
  public static var externalRecordImport: CocoaError.Code {
    CocoaError.Code(rawValue: NSExternalRecordImportError)
  }
  /// An external record could not be read.
  public static var externalRecordImportError: CocoaError.Code {
    CocoaError.Code(rawValue: NSExternalRecordImportError)
  }
  /// No mapping could be inferred between two models.
  public static var inferredMappingModel: CocoaError.Code {
    CocoaError.Code(rawValue: NSInferredMappingModelError)
  }
  /// No mapping could be inferred between two models.
  public static var inferredMappingModelError: CocoaError.Code {
    CocoaError.Code(rawValue: NSInferredMappingModelError)
  }
  /// Objects have values that must be unique.
  public static var managedObjectConstraintMerge: CocoaError.Code {
    CocoaError.Code(rawValue: NSManagedObjectConstraintMergeError)
  }
  /// Objects have values that must be unique.
  public static var managedObjectConstraintMergeError: CocoaError.Code {
    CocoaError.Code(rawValue: NSManagedObjectConstraintMergeError)
  }
  /// A context could not be locked.
  public static var managedObjectContextLocking: CocoaError.Code {
    CocoaError.Code(rawValue: NSManagedObjectContextLockingError)
  }
  /// A context could not be locked.
  public static var managedObjectContextLockingError: CocoaError.Code {
    CocoaError.Code(rawValue: NSManagedObjectContextLockingError)
  }
  /// A relationship leads into another store.
  public static var managedObjectExternalRelationship: CocoaError.Code {
    CocoaError.Code(rawValue: NSManagedObjectExternalRelationshipError)
  }
  /// A relationship leads into another store.
  public static var managedObjectExternalRelationshipError: CocoaError.Code {
    CocoaError.Code(rawValue: NSManagedObjectExternalRelationshipError)
  }
  /// Objects were changed in the store since they were read.
  public static var managedObjectMerge: CocoaError.Code {
    CocoaError.Code(rawValue: NSManagedObjectMergeError)
  }
  /// Objects were changed in the store since they were read.
  public static var managedObjectMergeError: CocoaError.Code {
    CocoaError.Code(rawValue: NSManagedObjectMergeError)
  }
  /// An object refers to one that does not exist.
  public static var managedObjectReferentialIntegrity: CocoaError.Code {
    CocoaError.Code(rawValue: NSManagedObjectReferentialIntegrityError)
  }
  /// An object refers to one that does not exist.
  public static var managedObjectReferentialIntegrityError: CocoaError.Code {
    CocoaError.Code(rawValue: NSManagedObjectReferentialIntegrityError)
  }
  /// A value is not valid.
  public static var managedObjectValidation: CocoaError.Code {
    CocoaError.Code(rawValue: NSManagedObjectValidationError)
  }
  /// A value is not valid.
  public static var managedObjectValidationError: CocoaError.Code {
    CocoaError.Code(rawValue: NSManagedObjectValidationError)
  }
  /// A migration failed.
  public static var migration: CocoaError.Code {
    CocoaError.Code(rawValue: NSMigrationError)
  }
  /// A migration was cancelled.
  public static var migrationCancelled: CocoaError.Code {
    CocoaError.Code(rawValue: NSMigrationCancelledError)
  }
  /// A migration was cancelled.
  public static var migrationCancelledError: CocoaError.Code {
    CocoaError.Code(rawValue: NSMigrationCancelledError)
  }
  /// A migration failed.
  public static var migrationError: CocoaError.Code {
    CocoaError.Code(rawValue: NSMigrationError)
  }
  /// The destination of a migration failed.
  public static var migrationManagerDestinationStore: CocoaError.Code {
    CocoaError.Code(rawValue: NSMigrationManagerDestinationStoreError)
  }
  /// The destination of a migration failed.
  public static var migrationManagerDestinationStoreError: CocoaError.Code {
    CocoaError.Code(rawValue: NSMigrationManagerDestinationStoreError)
  }
  /// The source of a migration failed.
  public static var migrationManagerSourceStore: CocoaError.Code {
    CocoaError.Code(rawValue: NSMigrationManagerSourceStoreError)
  }
  /// The source of a migration failed.
  public static var migrationManagerSourceStoreError: CocoaError.Code {
    CocoaError.Code(rawValue: NSMigrationManagerSourceStoreError)
  }
  /// A mapping model was not found.
  public static var migrationMissingMappingModel: CocoaError.Code {
    CocoaError.Code(rawValue: NSMigrationMissingMappingModelError)
  }
  /// A mapping model was not found.
  public static var migrationMissingMappingModelError: CocoaError.Code {
    CocoaError.Code(rawValue: NSMigrationMissingMappingModelError)
  }
  /// The model of a store to migrate was not found.
  public static var migrationMissingSourceModel: CocoaError.Code {
    CocoaError.Code(rawValue: NSMigrationMissingSourceModelError)
  }
  /// The model of a store to migrate was not found.
  public static var migrationMissingSourceModelError: CocoaError.Code {
    CocoaError.Code(rawValue: NSMigrationMissingSourceModelError)
  }
  /// A coordinator could not be locked.
  public static var persistentStoreCoordinatorLocking: CocoaError.Code {
    CocoaError.Code(rawValue: NSPersistentStoreCoordinatorLockingError)
  }
  /// A coordinator could not be locked.
  public static var persistentStoreCoordinatorLockingError: CocoaError.Code {
    CocoaError.Code(rawValue: NSPersistentStoreCoordinatorLockingError)
  }
  /// A store refused an entity or a table.
  public static var persistentStoreIncompatibleSchema: CocoaError.Code {
    CocoaError.Code(rawValue: NSPersistentStoreIncompatibleSchemaError)
  }
  /// A store refused an entity or a table.
  public static var persistentStoreIncompatibleSchemaError: CocoaError.Code {
    CocoaError.Code(rawValue: NSPersistentStoreIncompatibleSchemaError)
  }
  /// A store was written with another model.
  public static var persistentStoreIncompatibleVersionHash: CocoaError.Code {
    CocoaError.Code(rawValue: NSPersistentStoreIncompatibleVersionHashError)
  }
  /// A store was written with another model.
  public static var persistentStoreIncompatibleVersionHashError: CocoaError.Code {
    CocoaError.Code(rawValue: NSPersistentStoreIncompatibleVersionHashError)
  }
  /// Some stores were saved and others were not.
  public static var persistentStoreIncompleteSave: CocoaError.Code {
    CocoaError.Code(rawValue: NSPersistentStoreIncompleteSaveError)
  }
  /// Some stores were saved and others were not.
  public static var persistentStoreIncompleteSaveError: CocoaError.Code {
    CocoaError.Code(rawValue: NSPersistentStoreIncompleteSaveError)
  }
  /// The type of a store is not known.
  public static var persistentStoreInvalidType: CocoaError.Code {
    CocoaError.Code(rawValue: NSPersistentStoreInvalidTypeError)
  }
  /// The type of a store is not known.
  public static var persistentStoreInvalidTypeError: CocoaError.Code {
    CocoaError.Code(rawValue: NSPersistentStoreInvalidTypeError)
  }
  /// A store could not be opened.
  public static var persistentStoreOpen: CocoaError.Code {
    CocoaError.Code(rawValue: NSPersistentStoreOpenError)
  }
  /// A store could not be opened.
  public static var persistentStoreOpenError: CocoaError.Code {
    CocoaError.Code(rawValue: NSPersistentStoreOpenError)
  }
  /// A store could not complete an operation.
  public static var persistentStoreOperation: CocoaError.Code {
    CocoaError.Code(rawValue: NSPersistentStoreOperationError)
  }
  /// A store could not complete an operation.
  public static var persistentStoreOperationError: CocoaError.Code {
    CocoaError.Code(rawValue: NSPersistentStoreOperationError)
  }
  /// A store could not be saved.
  public static var persistentStoreSave: CocoaError.Code {
    CocoaError.Code(rawValue: NSPersistentStoreSaveError)
  }
  /// A conflict during a save was not resolved.
  public static var persistentStoreSaveConflicts: CocoaError.Code {
    CocoaError.Code(rawValue: NSPersistentStoreSaveConflictsError)
  }
  /// A conflict during a save was not resolved.
  public static var persistentStoreSaveConflictsError: CocoaError.Code {
    CocoaError.Code(rawValue: NSPersistentStoreSaveConflictsError)
  }
  /// A store could not be saved.
  public static var persistentStoreSaveError: CocoaError.Code {
    CocoaError.Code(rawValue: NSPersistentStoreSaveError)
  }
  /// A store was not reachable in time.
  public static var persistentStoreTimeout: CocoaError.Code {
    CocoaError.Code(rawValue: NSPersistentStoreTimeoutError)
  }
  /// A store was not reachable in time.
  public static var persistentStoreTimeoutError: CocoaError.Code {
    CocoaError.Code(rawValue: NSPersistentStoreTimeoutError)
  }
  /// A store is of another type than the given one.
  public static var persistentStoreTypeMismatch: CocoaError.Code {
    CocoaError.Code(rawValue: NSPersistentStoreTypeMismatchError)
  }
  /// A store is of another type than the given one.
  public static var persistentStoreTypeMismatchError: CocoaError.Code {
    CocoaError.Code(rawValue: NSPersistentStoreTypeMismatchError)
  }
  /// A store does not support a type of request.
  public static var persistentStoreUnsupportedRequestType: CocoaError.Code {
    CocoaError.Code(rawValue: NSPersistentStoreUnsupportedRequestTypeError)
  }
  /// A store does not support a type of request.
  public static var persistentStoreUnsupportedRequestTypeError: CocoaError.Code {
    CocoaError.Code(rawValue: NSPersistentStoreUnsupportedRequestTypeError)
  }
  /// SQLite failed.
  public static var sqlite: CocoaError.Code {
    CocoaError.Code(rawValue: NSSQLiteError)
  }
  /// SQLite failed.
  public static var sqliteError: CocoaError.Code {
    CocoaError.Code(rawValue: NSSQLiteError)
  }
  /// A date is too late.
  public static var validationDateTooLate: CocoaError.Code {
    CocoaError.Code(rawValue: NSValidationDateTooLateError)
  }
  /// A date is too late.
  public static var validationDateTooLateError: CocoaError.Code {
    CocoaError.Code(rawValue: NSValidationDateTooLateError)
  }
  /// A date is too soon.
  public static var validationDateTooSoon: CocoaError.Code {
    CocoaError.Code(rawValue: NSValidationDateTooSoonError)
  }
  /// A date is too soon.
  public static var validationDateTooSoonError: CocoaError.Code {
    CocoaError.Code(rawValue: NSValidationDateTooSoonError)
  }
  /// A date is not valid.
  public static var validationInvalidDate: CocoaError.Code {
    CocoaError.Code(rawValue: NSValidationInvalidDateError)
  }
  /// A date is not valid.
  public static var validationInvalidDateError: CocoaError.Code {
    CocoaError.Code(rawValue: NSValidationInvalidDateError)
  }
  /// A property that is not optional has no value.
  public static var validationMissingMandatoryProperty: CocoaError.Code {
    CocoaError.Code(rawValue: NSValidationMissingMandatoryPropertyError)
  }
  /// A property that is not optional has no value.
  public static var validationMissingMandatoryPropertyError: CocoaError.Code {
    CocoaError.Code(rawValue: NSValidationMissingMandatoryPropertyError)
  }
  /// Several values are not valid; see `NSDetailedErrorsKey`.
  public static var validationMultipleErrors: CocoaError.Code {
    CocoaError.Code(rawValue: NSValidationMultipleErrorsError)
  }
  /// Several values are not valid; see `NSDetailedErrorsKey`.
  public static var validationMultipleErrorsError: CocoaError.Code {
    CocoaError.Code(rawValue: NSValidationMultipleErrorsError)
  }
  /// A number is too large.
  public static var validationNumberTooLarge: CocoaError.Code {
    CocoaError.Code(rawValue: NSValidationNumberTooLargeError)
  }
  /// A number is too large.
  public static var validationNumberTooLargeError: CocoaError.Code {
    CocoaError.Code(rawValue: NSValidationNumberTooLargeError)
  }
  /// A number is too small.
  public static var validationNumberTooSmall: CocoaError.Code {
    CocoaError.Code(rawValue: NSValidationNumberTooSmallError)
  }
  /// A number is too small.
  public static var validationNumberTooSmallError: CocoaError.Code {
    CocoaError.Code(rawValue: NSValidationNumberTooSmallError)
  }
  /// An object cannot be deleted while a relationship leads on.
  public static var validationRelationshipDeniedDelete: CocoaError.Code {
    CocoaError.Code(rawValue: NSValidationRelationshipDeniedDeleteError)
  }
  /// An object cannot be deleted while a relationship leads on.
  public static var validationRelationshipDeniedDeleteError: CocoaError.Code {
    CocoaError.Code(rawValue: NSValidationRelationshipDeniedDeleteError)
  }
  /// A relationship has too many destinations.
  public static var validationRelationshipExceedsMaximumCount: CocoaError.Code {
    CocoaError.Code(rawValue: NSValidationRelationshipExceedsMaximumCountError)
  }
  /// A relationship has too many destinations.
  public static var validationRelationshipExceedsMaximumCountError: CocoaError.Code {
    CocoaError.Code(rawValue: NSValidationRelationshipExceedsMaximumCountError)
  }
  /// A relationship has too few destinations.
  public static var validationRelationshipLacksMinimumCount: CocoaError.Code {
    CocoaError.Code(rawValue: NSValidationRelationshipLacksMinimumCountError)
  }
  /// A relationship has too few destinations.
  public static var validationRelationshipLacksMinimumCountError: CocoaError.Code {
    CocoaError.Code(rawValue: NSValidationRelationshipLacksMinimumCountError)
  }
  /// A text does not match its pattern.
  public static var validationStringPatternMatching: CocoaError.Code {
    CocoaError.Code(rawValue: NSValidationStringPatternMatchingError)
  }
  /// A text does not match its pattern.
  public static var validationStringPatternMatchingError: CocoaError.Code {
    CocoaError.Code(rawValue: NSValidationStringPatternMatchingError)
  }
  /// A text is too long.
  public static var validationStringTooLong: CocoaError.Code {
    CocoaError.Code(rawValue: NSValidationStringTooLongError)
  }
  /// A text is too long.
  public static var validationStringTooLongError: CocoaError.Code {
    CocoaError.Code(rawValue: NSValidationStringTooLongError)
  }
  /// A text is too short.
  public static var validationStringTooShort: CocoaError.Code {
    CocoaError.Code(rawValue: NSValidationStringTooShortError)
  }
  /// A text is too short.
  public static var validationStringTooShortError: CocoaError.Code {
    CocoaError.Code(rawValue: NSValidationStringTooShortError)
  }
}
