import Foundation
import WatershedSQLite

/// Creates the errors of migrations, with Core Data's texts for their codes.
enum MigrationError {
  static func make(_ code: Int, _ userInfo: [String: Any] = [:]) -> NSError {
    var userInfo = userInfo
    userInfo[NSLocalizedDescriptionKey] = userInfo[NSLocalizedDescriptionKey] ?? sentence(of: code)
    return NSError(domain: NSCocoaErrorDomain, code: code, userInfo: userInfo)
  }

  private static func sentence(of code: Int) -> String {
    switch code {
    case NSMigrationMissingSourceModelError:
      "Persistent store migration failed, missing source managed object model."
    case NSMigrationMissingMappingModelError:
      "Persistent store migration failed, missing mapping model."
    case NSMigrationManagerSourceStoreError:
      "Persistent store migration manager failed, problem accessing source store."
    case NSMigrationManagerDestinationStoreError:
      "Persistent store migration manager failed, problem accessing destination store."
    case NSEntityMigrationPolicyError:
      "Persistent store migration failed due to error during custom policy processing."
    case NSMigrationCancelledError: "Persistent store migration was cancelled."
    case NSInferredMappingModelError: "Inferred mapping model error."
    case NSStagedMigrationBackwardMigrationError:
      "A store file cannot be migrated backwards with staged migration."
    default: "An error occurred during persistent store migration."
    }
  }

  /// The error of a failed migration in place; its cause is the underlying error.
  ///
  /// An error such as a full disk or a lock is returned unchanged.
  static func inPlace(_ error: any Error, at url: URL) -> NSError {
    let cause: NSError
    switch error {
    case let error as SQLiteError where error.isConstraint:
      cause = make(
        NSMigrationConstraintViolationError,
        ["reason": "constraint violation during attempted migration", "constraint": error.message]
      )
    case let error as SQLiteError:
      return StoreError.from(error, at: url.path, while: "migrating").nsError
    case let error as StoreError:
      return error.nsError
    default:
      cause = error as NSError
    }
    let reason = cause.userInfo["reason"] as? String ?? cause.localizedDescription
    return make(
      NSMigrationError,
      [
        "reason": "Cannot migrate store in-place: \(reason)",
        "sourceURL": url,
        "destinationURL": url,
        NSFilePathErrorKey: url.path,
        NSUnderlyingErrorKey: cause,
      ]
    )
  }

  /// The error for two models with neither a mapping model nor an inferred mapping between them.
  static func missingMapping(
    from source: NSManagedObjectModel,
    to destination: NSManagedObjectModel,
    at url: URL,
    _ reason: String,
    cause: NSError? = nil
  ) -> NSError {
    var userInfo: [String: Any] = [
      "reason": reason, "sourceModel": source, "destinationModel": destination,
      NSFilePathErrorKey: url.path,
    ]
    userInfo[NSUnderlyingErrorKey] = cause
    for key in ["entity", "property"] { userInfo[key] = cause?.userInfo[key] }
    return make(NSMigrationMissingMappingModelError, userInfo)
  }
}
