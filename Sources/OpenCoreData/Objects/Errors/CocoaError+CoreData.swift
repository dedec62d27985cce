import Foundation

// Core Data's codes as `CocoaError` itself has them, each by its short and by its older name.

extension CocoaError {
  /// Something else went wrong.
  public static var coreData: CocoaError.Code { .coreData }
  /// Something else went wrong.
  public static var coreDataError: CocoaError.Code { .coreDataError }
  /// A migration policy failed.
  public static var entityMigrationPolicy: CocoaError.Code { .entityMigrationPolicy }
  /// A migration policy failed.
  public static var entityMigrationPolicyError: CocoaError.Code { .entityMigrationPolicyError }
  /// An external record could not be read.
  public static var externalRecordImport: CocoaError.Code { .externalRecordImport }
  /// An external record could not be read.
  public static var externalRecordImportError: CocoaError.Code { .externalRecordImportError }
  /// No mapping could be inferred between two models.
  public static var inferredMappingModel: CocoaError.Code { .inferredMappingModel }
  /// No mapping could be inferred between two models.
  public static var inferredMappingModelError: CocoaError.Code { .inferredMappingModelError }
  /// Objects have values that must be unique.
  public static var managedObjectConstraintMerge: CocoaError.Code { .managedObjectConstraintMerge }
  /// Objects have values that must be unique.
  public static var managedObjectConstraintMergeError: CocoaError.Code {
    .managedObjectConstraintMergeError
  }
  /// A context could not be locked.
  public static var managedObjectContextLocking: CocoaError.Code { .managedObjectContextLocking }
  /// A context could not be locked.
  public static var managedObjectContextLockingError: CocoaError.Code {
    .managedObjectContextLockingError
  }
  /// A relationship leads into another store.
  public static var managedObjectExternalRelationship: CocoaError.Code {
    .managedObjectExternalRelationship
  }
  /// A relationship leads into another store.
  public static var managedObjectExternalRelationshipError: CocoaError.Code {
    .managedObjectExternalRelationshipError
  }
  /// Objects were changed in the store since they were read.
  public static var managedObjectMerge: CocoaError.Code { .managedObjectMerge }
  /// Objects were changed in the store since they were read.
  public static var managedObjectMergeError: CocoaError.Code { .managedObjectMergeError }
  /// An object refers to one that does not exist.
  public static var managedObjectReferentialIntegrity: CocoaError.Code {
    .managedObjectReferentialIntegrity
  }
  /// An object refers to one that does not exist.
  public static var managedObjectReferentialIntegrityError: CocoaError.Code {
    .managedObjectReferentialIntegrityError
  }
  /// A value is not valid.
  public static var managedObjectValidation: CocoaError.Code { .managedObjectValidation }
  /// A value is not valid.
  public static var managedObjectValidationError: CocoaError.Code { .managedObjectValidationError }
  /// A migration failed.
  public static var migration: CocoaError.Code { .migration }
  /// A migration was cancelled.
  public static var migrationCancelled: CocoaError.Code { .migrationCancelled }
  /// A migration was cancelled.
  public static var migrationCancelledError: CocoaError.Code { .migrationCancelledError }
  /// A migration failed.
  public static var migrationError: CocoaError.Code { .migrationError }
  /// The destination of a migration failed.
  public static var migrationManagerDestinationStore: CocoaError.Code {
    .migrationManagerDestinationStore
  }
  /// The destination of a migration failed.
  public static var migrationManagerDestinationStoreError: CocoaError.Code {
    .migrationManagerDestinationStoreError
  }
  /// The source of a migration failed.
  public static var migrationManagerSourceStore: CocoaError.Code { .migrationManagerSourceStore }
  /// The source of a migration failed.
  public static var migrationManagerSourceStoreError: CocoaError.Code {
    .migrationManagerSourceStoreError
  }
  /// A mapping model was not found.
  public static var migrationMissingMappingModel: CocoaError.Code { .migrationMissingMappingModel }
  /// A mapping model was not found.
  public static var migrationMissingMappingModelError: CocoaError.Code {
    .migrationMissingMappingModelError
  }
  /// The model of a store to migrate was not found.
  public static var migrationMissingSourceModel: CocoaError.Code { .migrationMissingSourceModel }
  /// The model of a store to migrate was not found.
  public static var migrationMissingSourceModelError: CocoaError.Code {
    .migrationMissingSourceModelError
  }
  /// A coordinator could not be locked.
  public static var persistentStoreCoordinatorLocking: CocoaError.Code {
    .persistentStoreCoordinatorLocking
  }
  /// A coordinator could not be locked.
  public static var persistentStoreCoordinatorLockingError: CocoaError.Code {
    .persistentStoreCoordinatorLockingError
  }
  /// A store refused an entity or a table.
  public static var persistentStoreIncompatibleSchema: CocoaError.Code {
    .persistentStoreIncompatibleSchema
  }
  /// A store refused an entity or a table.
  public static var persistentStoreIncompatibleSchemaError: CocoaError.Code {
    .persistentStoreIncompatibleSchemaError
  }
  /// A store was written with another model.
  public static var persistentStoreIncompatibleVersionHash: CocoaError.Code {
    .persistentStoreIncompatibleVersionHash
  }
  /// A store was written with another model.
  public static var persistentStoreIncompatibleVersionHashError: CocoaError.Code {
    .persistentStoreIncompatibleVersionHashError
  }
  /// Some stores were saved and others were not.
  public static var persistentStoreIncompleteSave: CocoaError.Code {
    .persistentStoreIncompleteSave
  }
  /// Some stores were saved and others were not.
  public static var persistentStoreIncompleteSaveError: CocoaError.Code {
    .persistentStoreIncompleteSaveError
  }
  /// The type of a store is not known.
  public static var persistentStoreInvalidType: CocoaError.Code { .persistentStoreInvalidType }
  /// The type of a store is not known.
  public static var persistentStoreInvalidTypeError: CocoaError.Code {
    .persistentStoreInvalidTypeError
  }
  /// A store could not be opened.
  public static var persistentStoreOpen: CocoaError.Code { .persistentStoreOpen }
  /// A store could not be opened.
  public static var persistentStoreOpenError: CocoaError.Code { .persistentStoreOpenError }
  /// A store could not complete an operation.
  public static var persistentStoreOperation: CocoaError.Code { .persistentStoreOperation }
  /// A store could not complete an operation.
  public static var persistentStoreOperationError: CocoaError.Code {
    .persistentStoreOperationError
  }
  /// A store could not be saved.
  public static var persistentStoreSave: CocoaError.Code { .persistentStoreSave }
  /// A conflict during a save was not resolved.
  public static var persistentStoreSaveConflicts: CocoaError.Code { .persistentStoreSaveConflicts }
  /// A conflict during a save was not resolved.
  public static var persistentStoreSaveConflictsError: CocoaError.Code {
    .persistentStoreSaveConflictsError
  }
  /// A store could not be saved.
  public static var persistentStoreSaveError: CocoaError.Code { .persistentStoreSaveError }
  /// A store was not reachable in time.
  public static var persistentStoreTimeout: CocoaError.Code { .persistentStoreTimeout }
  /// A store was not reachable in time.
  public static var persistentStoreTimeoutError: CocoaError.Code { .persistentStoreTimeoutError }
  /// A store is of another type than the given one.
  public static var persistentStoreTypeMismatch: CocoaError.Code { .persistentStoreTypeMismatch }
  /// A store is of another type than the given one.
  public static var persistentStoreTypeMismatchError: CocoaError.Code {
    .persistentStoreTypeMismatchError
  }
  /// A store does not support a type of request.
  public static var persistentStoreUnsupportedRequestType: CocoaError.Code {
    .persistentStoreUnsupportedRequestType
  }
  /// A store does not support a type of request.
  public static var persistentStoreUnsupportedRequestTypeError: CocoaError.Code {
    .persistentStoreUnsupportedRequestTypeError
  }
  /// SQLite failed.
  public static var sqlite: CocoaError.Code { .sqlite }
  /// SQLite failed.
  public static var sqliteError: CocoaError.Code { .sqliteError }
  /// A date is too late.
  public static var validationDateTooLate: CocoaError.Code { .validationDateTooLate }
  /// A date is too late.
  public static var validationDateTooLateError: CocoaError.Code { .validationDateTooLateError }
  /// A date is too soon.
  public static var validationDateTooSoon: CocoaError.Code { .validationDateTooSoon }
  /// A date is too soon.
  public static var validationDateTooSoonError: CocoaError.Code { .validationDateTooSoonError }
  /// A date is not valid.
  public static var validationInvalidDate: CocoaError.Code { .validationInvalidDate }
  /// A date is not valid.
  public static var validationInvalidDateError: CocoaError.Code { .validationInvalidDateError }
  /// A property that is not optional has no value.
  public static var validationMissingMandatoryProperty: CocoaError.Code {
    .validationMissingMandatoryProperty
  }
  /// A property that is not optional has no value.
  public static var validationMissingMandatoryPropertyError: CocoaError.Code {
    .validationMissingMandatoryPropertyError
  }
  /// Several values are not valid; see `NSDetailedErrorsKey`.
  public static var validationMultipleErrors: CocoaError.Code { .validationMultipleErrors }
  /// Several values are not valid; see `NSDetailedErrorsKey`.
  public static var validationMultipleErrorsError: CocoaError.Code {
    .validationMultipleErrorsError
  }
  /// A number is too large.
  public static var validationNumberTooLarge: CocoaError.Code { .validationNumberTooLarge }
  /// A number is too large.
  public static var validationNumberTooLargeError: CocoaError.Code {
    .validationNumberTooLargeError
  }
  /// A number is too small.
  public static var validationNumberTooSmall: CocoaError.Code { .validationNumberTooSmall }
  /// A number is too small.
  public static var validationNumberTooSmallError: CocoaError.Code {
    .validationNumberTooSmallError
  }
  /// An object cannot be deleted while a relationship leads on.
  public static var validationRelationshipDeniedDelete: CocoaError.Code {
    .validationRelationshipDeniedDelete
  }
  /// An object cannot be deleted while a relationship leads on.
  public static var validationRelationshipDeniedDeleteError: CocoaError.Code {
    .validationRelationshipDeniedDeleteError
  }
  /// A relationship has too many destinations.
  public static var validationRelationshipExceedsMaximumCount: CocoaError.Code {
    .validationRelationshipExceedsMaximumCount
  }
  /// A relationship has too many destinations.
  public static var validationRelationshipExceedsMaximumCountError: CocoaError.Code {
    .validationRelationshipExceedsMaximumCountError
  }
  /// A relationship has too few destinations.
  public static var validationRelationshipLacksMinimumCount: CocoaError.Code {
    .validationRelationshipLacksMinimumCount
  }
  /// A relationship has too few destinations.
  public static var validationRelationshipLacksMinimumCountError: CocoaError.Code {
    .validationRelationshipLacksMinimumCountError
  }
  /// A text does not match its pattern.
  public static var validationStringPatternMatching: CocoaError.Code {
    .validationStringPatternMatching
  }
  /// A text does not match its pattern.
  public static var validationStringPatternMatchingError: CocoaError.Code {
    .validationStringPatternMatchingError
  }
  /// A text is too long.
  public static var validationStringTooLong: CocoaError.Code { .validationStringTooLong }
  /// A text is too long.
  public static var validationStringTooLongError: CocoaError.Code { .validationStringTooLongError }
  /// A text is too short.
  public static var validationStringTooShort: CocoaError.Code { .validationStringTooShort }
  /// A text is too short.
  public static var validationStringTooShortError: CocoaError.Code {
    .validationStringTooShortError
  }
}
