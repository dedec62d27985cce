import CloudKitMirroring
import OpenCloudKit
import OpenCoreData

/// An error that an app receives from the Swift modules, with its remedy for `watershed explain`.
struct AppError: Sendable {
  /// The number that the app prints: `(14)`, `Code=134060`.
  var number: Int
  /// The name in code: `serverRecordChanged`, `NSCoreDataError`.
  var name: String
  var meaning: String
  var remedy: String

  /// Finds an error by its number, or by its name with or without the prefix of its type, in any case.
  static func find(_ text: String) -> AppError? {
    if let number = Int(text) { return all.first { $0.number == number } }
    let name = text.lowercased()
    return all.first { error in
      let known = error.name.lowercased()
      return [known, "ckerror." + known, "ckerror" + known, "." + known].contains(name)
    }
  }

  static let all = cloudKit + coreData + mirroring

  private static func cloudKit(
    _ code: CKError.Code,
    _ meaning: String,
    _ remedy: String
  ) -> AppError {
    AppError(number: code.rawValue, name: "\(code)", meaning: meaning, remedy: remedy)
  }

  /// The codes of `CKError`.
  static let cloudKit = [
    cloudKit(
      .internalError,
      "The client could not read the service's answer.",
      "Try again; read the message, and the server's log about the request."
    ),
    cloudKit(
      .partialFailure,
      "Some items of the request failed.",
      "Read partialErrorsByItemID: each item has an error of its own."
    ),
    cloudKit(
      .networkUnavailable,
      "The service cannot be reached; nothing was sent.",
      "Check the address of CKContainerConfiguration, and watershed doctor; then try again."
    ),
    cloudKit(
      .networkFailure,
      "The connection broke; the request may have been executed.",
      "Send the same again: a repeated save of a saved record is a conflict with its own values."
    ),
    cloudKit(
      .badContainer,
      "The container is unknown to the server or not configured.",
      "watershed containers list; call CKContainer.configure(_:) before the first container."
    ),
    cloudKit(
      .serviceUnavailable,
      "The service cannot answer now.",
      "Try again after retryAfterSeconds."
    ),
    cloudKit(
      .requestRateLimited,
      "Too many requests were sent.",
      "Wait retryAfterSeconds; rateLimit in the configuration."
    ),
    cloudKit(
      .missingEntitlement,
      "The app's configuration does not include what the call needs.",
      "Read the message: push can be turned off in CKContainerConfiguration."
    ),
    cloudKit(
      .notAuthenticated,
      "No user is signed in, or the session was revoked.",
      "Sign in; an API token must be of the same container and environment: watershed tokens list."
    ),
    cloudKit(
      .permissionFailure,
      "The type's grants, the share or the zone do not allow this.",
      "Check the type's GRANT lines: watershed schema export."
    ),
    cloudKit(
      .unknownItem,
      "There is no such record, record type or subscription.",
      "Check names and spelling; a record may have been deleted."
    ),
    cloudKit(
      .invalidArguments,
      "The request is malformed, against the schema, or lacks an index.",
      "Read the message; for indexes: watershed schema add-index."
    ),
    cloudKit(
      .serverRecordChanged,
      "The record was saved by another device since it was fetched.",
      "Merge into serverRecord, with ancestorRecord as the common base, and save that record."
    ),
    cloudKit(
      .serverRejectedRequest,
      "The service refused the request.",
      "Read the message, and the server's log about the request."
    ),
    cloudKit(
      .assetFileNotFound,
      "The file of an asset cannot be read.",
      "Keep the file until the record is saved, and set the field again."
    ),
    cloudKit(
      .assetFileModified,
      "The file of an asset changed while it was uploaded.",
      "Save the record again."
    ),
    cloudKit(
      .constraintViolation,
      "Another record has the value of a unique field.",
      "Choose another value, or update the other record."
    ),
    cloudKit(
      .operationCancelled,
      "The operation or its task was cancelled.",
      "Queue a new operation if the result is still needed."
    ),
    cloudKit(
      .changeTokenExpired,
      "The change token is too old, or the server was restored.",
      "Discard the token and fetch the changes from the beginning."
    ),
    cloudKit(
      .batchRequestFailed,
      "Another item of the atomic batch failed, so this one was not stored.",
      "Correct the item that has an error of its own, and send the batch again."
    ),
    cloudKit(.zoneBusy, "The zone is busy.", "Try again after retryAfterSeconds."),
    cloudKit(
      .badDatabase,
      "The database does not support the request.",
      "Use the private database for zones, shares and feeds."
    ),
    cloudKit(
      .quotaExceeded,
      "The file or the user's data is over a limit.",
      "Remove data, or raise assetLimit, userQuota or publicQuota in the configuration."
    ),
    cloudKit(.zoneNotFound, "The zone does not exist.", "Save the zone, then its records."),
    cloudKit(
      .limitExceeded,
      "The request or an item in it is too large.",
      "Send less at a time: at most 200 records; Documentation/Limits.md has all limits."
    ),
    cloudKit(
      .userDeletedZone,
      "The user deleted the zone.",
      "Remove the local copy, and do not create the zone again without asking the user."
    ),
    cloudKit(
      .tooManyParticipants,
      "The share has too many participants.",
      "Remove some, or make the share public."
    ),
    cloudKit(
      .alreadyShared,
      "The record belongs to another share.",
      "Use the record's own share, or that of its parent."
    ),
    cloudKit(
      .referenceViolation,
      "The target of a reference is missing, or a deletion would break one.",
      "Save the target first or in the same batch; delete what refers to the record first."
    ),
    cloudKit(
      .participantMayNeedVerification,
      "The participant is not known yet.",
      "Open the share's URL in a browser and sign in there."
    ),
    cloudKit(
      .serverResponseLost,
      "The reply was lost: whether the change was made is unknown.",
      "Fetch the record, then decide."
    ),
    cloudKit(
      .assetNotAvailable,
      "The file of an asset is not available.",
      "Try again; if it lasts, the server lost the file: save the record with the file again."
    ),
    cloudKit(
      .accountTemporarilyUnavailable,
      "The account changed or cannot be used now.",
      "Ask accountStatus() again, and repeat the request for the current user."
    ),
  ]

  /// The codes of `NSCocoaErrorDomain` that belong to Core Data.
  static let coreData = [
    AppError(
      number: NSManagedObjectValidationError,
      name: "NSManagedObjectValidationError",
      meaning: "A value is not valid.",
      remedy:
        "NSValidationErrorKey in the user info names the property, NSValidationErrorObject the object."
    ),
    AppError(
      number: NSManagedObjectConstraintValidationError,
      name: "NSManagedObjectConstraintValidationError",
      meaning: "An object has a value that another one has, and the constraint makes it unique.",
      remedy: "Change the value, or set a merge policy before the save."
    ),
    AppError(
      number: NSValidationMultipleErrorsError,
      name: "NSValidationMultipleErrorsError",
      meaning: "Several values are not valid.",
      remedy: "NSDetailedErrors in the user info has an error for each."
    ),
    AppError(
      number: NSValidationMissingMandatoryPropertyError,
      name: "NSValidationMissingMandatoryPropertyError",
      meaning: "A property that is not optional has no value.",
      remedy: "Set it before the save, or give it a default or make it optional in the model."
    ),
    AppError(
      number: NSValidationRelationshipLacksMinimumCountError,
      name: "NSValidationRelationshipLacksMinimumCountError",
      meaning: "A relationship has fewer objects than its minimum.",
      remedy: "Add objects, or lower the minimum count in the model."
    ),
    AppError(
      number: NSValidationRelationshipExceedsMaximumCountError,
      name: "NSValidationRelationshipExceedsMaximumCountError",
      meaning: "A relationship has more objects than its maximum.",
      remedy: "Remove objects, or raise the maximum count in the model."
    ),
    AppError(
      number: NSValidationRelationshipDeniedDeleteError,
      name: "NSValidationRelationshipDeniedDeleteError",
      meaning: "A relationship with the delete rule Deny still has objects.",
      remedy: "Delete them first, or choose another delete rule."
    ),
    AppError(
      number: NSValidationNumberTooLargeError,
      name: "NSValidationNumberTooLargeError",
      meaning: "A number is above the maximum of its attribute.",
      remedy: "Correct the value."
    ),
    AppError(
      number: NSValidationNumberTooSmallError,
      name: "NSValidationNumberTooSmallError",
      meaning: "A number is below the minimum of its attribute.",
      remedy: "Correct the value."
    ),
    AppError(
      number: NSValidationDateTooLateError,
      name: "NSValidationDateTooLateError",
      meaning: "A date is after the maximum of its attribute.",
      remedy: "Correct the value."
    ),
    AppError(
      number: NSValidationDateTooSoonError,
      name: "NSValidationDateTooSoonError",
      meaning: "A date is before the minimum of its attribute.",
      remedy: "Correct the value."
    ),
    AppError(
      number: NSValidationStringTooLongError,
      name: "NSValidationStringTooLongError",
      meaning: "A text is longer than its attribute allows.",
      remedy: "Shorten the value."
    ),
    AppError(
      number: NSValidationStringTooShortError,
      name: "NSValidationStringTooShortError",
      meaning: "A text is shorter than its attribute requires.",
      remedy: "Correct the value."
    ),
    AppError(
      number: NSValidationStringPatternMatchingError,
      name: "NSValidationStringPatternMatchingError",
      meaning: "A text does not match the regular expression of its attribute.",
      remedy: "Correct the value; the expression has to match the whole text."
    ),
    AppError(
      number: NSManagedObjectReferentialIntegrityError,
      name: "NSManagedObjectReferentialIntegrityError",
      meaning: "A fault could not be loaded: its row was deleted.",
      remedy: "Use existingObject(with:), or shouldDeleteInaccessibleFaults."
    ),
    AppError(
      number: NSManagedObjectMergeError,
      name: "NSManagedObjectMergeError",
      meaning: "Objects were changed in the store since this context read them.",
      remedy: "Set mergePolicy, or refresh the objects of conflictList and save again."
    ),
    AppError(
      number: NSManagedObjectConstraintMergeError,
      name: "NSManagedObjectConstraintMergeError",
      meaning: "Saved objects break a uniqueness constraint.",
      remedy: "Set a merge policy other than NSErrorMergePolicy, or delete one of each pair."
    ),
    AppError(
      number: NSPersistentStoreInvalidTypeError,
      name: "NSPersistentStoreInvalidTypeError",
      meaning: "The store type is unknown.",
      remedy: "Use SQLite, binary or memory; XML stores are not supported."
    ),
    AppError(
      number: NSPersistentStoreIncompatibleSchemaError,
      name: "NSPersistentStoreIncompatibleSchemaError",
      meaning: "The store refused an entity or a table.",
      remedy: "Read the reason in the user info."
    ),
    AppError(
      number: NSCoreDataError,
      name: "NSCoreDataError",
      meaning:
        "Core Data refused the operation; at the set-up of mirroring, CloudKit cannot take the model.",
      remedy:
        "Read NSLocalizedFailureReason; watershed model records MODEL lists what a model breaks."
    ),
    AppError(
      number: NSPersistentStoreOperationError,
      name: "NSPersistentStoreOperationError",
      meaning: "The store could not complete an operation.",
      remedy: "Read the reason in the user info."
    ),
    AppError(
      number: NSPersistentStoreOpenError,
      name: "NSPersistentStoreOpenError",
      meaning: "The store cannot be opened.",
      remedy: "Check the path, its folder and the permissions; the user info has the cause."
    ),
    AppError(
      number: NSPersistentStoreTimeoutError,
      name: "NSPersistentStoreTimeoutError",
      meaning: "The store was busy for longer than its timeout.",
      remedy: "Try again; look for another process with a long transaction."
    ),
    AppError(
      number: NSPersistentStoreIncompatibleVersionHashError,
      name: "NSPersistentStoreIncompatibleVersionHashError",
      meaning: "The store was written with another version of the model.",
      remedy: "Set shouldMigrateStoreAutomatically, and keep every version in the .xcdatamodeld."
    ),
    AppError(
      number: NSMigrationError,
      name: "NSMigrationError",
      meaning: "A migration failed; the store is unchanged.",
      remedy: "The underlying error names the object and the value."
    ),
    AppError(
      number: NSMigrationMissingSourceModelError,
      name: "NSMigrationMissingSourceModelError",
      meaning: "No model of the bundle fits the store that is to be migrated.",
      remedy: "Keep every version in the .xcdatamodeld, and compile them into the app."
    ),
    AppError(
      number: NSMigrationMissingMappingModelError,
      name: "NSMigrationMissingMappingModelError",
      meaning: "No mapping model leads from the store's model to the new one.",
      remedy: "Set shouldInferMappingModelAutomatically, or add a mapping model."
    ),
    AppError(
      number: NSEntityMigrationPolicyError,
      name: "NSEntityMigrationPolicyError",
      meaning: "A migration policy failed.",
      remedy: "Read the underlying error."
    ),
    AppError(
      number: NSSQLiteError,
      name: "NSSQLiteError",
      meaning: "SQLite failed.",
      remedy:
        "NSSQLiteErrorDomain in the user info has SQLite's code: 11 damaged, 13 full, 14 no such folder."
    ),
    AppError(
      number: NSInferredMappingModelError,
      name: "NSInferredMappingModelError",
      meaning: "No mapping can be inferred between two versions of the model.",
      remedy: "The reason names the property; write a mapping model or migrate in two steps."
    ),
    AppError(
      number: NSPersistentHistoryTokenExpiredError,
      name: "NSPersistentHistoryTokenExpiredError",
      meaning: "The history before the token was deleted.",
      remedy: "Read the objects again, and keep a new token."
    ),
  ]

  private static func mirroring(
    _ code: MirroringErrorCode,
    _ meaning: String,
    _ remedy: String
  ) -> AppError {
    AppError(number: code.rawValue, name: "\(code)", meaning: meaning, remedy: remedy)
  }

  /// The codes of `NSCocoaErrorDomain` that the mirroring adds; its refusal of a model is `NSCoreDataError`.
  static let mirroring = [
    mirroring(
      .accountUnusable,
      "The mirroring has no account or no container that it can use.",
      "Sign in, or check the container of NSPersistentCloudKitContainerOptions."
    ),
    mirroring(
      .metadataUnreadable,
      "The mirroring's tables in the store cannot be read or written.",
      "Read the underlying error: the disk may be full, or the store read-only."
    ),
    mirroring(
      .assetFolder,
      "The folder for large values cannot be created.",
      "Check the permissions of the store's folder."
    ),
    mirroring(
      .several,
      "Several errors occurred at once.",
      "NSDetailedErrors in the user info has each."
    ),
    mirroring(
      .accountChanged,
      "Another user has signed in.",
      "The store is set up again for the new user; wait for its next set-up event."
    ),
    mirroring(
      .neverInitialized,
      "The set-up of the mirroring did not succeed.",
      "Read the error of the set-up event: CKContainer and the model are checked there."
    ),
    mirroring(
      .cancelled,
      "The store was removed, or the process ends.",
      "Load the store again."
    ),
    mirroring(
      .anotherInstance,
      "Another container of this process, or another process, mirrors the store.",
      "Use one NSPersistentCloudKitContainer for a store."
    ),
    mirroring(
      .duplicateRequest,
      "A request of the same kind is waiting already.",
      "Wait for the event of that request."
    ),
    mirroring(
      .recoveryEntryUnusable,
      "An entry of the recovery list cannot be restored.",
      "Read the reason; watershed recovery list shows the entry's values."
    ),
  ]
}
