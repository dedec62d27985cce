import Foundation
import WatershedSQLite

/// Makes the errors of migrations, with the sentences that Core Data has for their codes.
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

  /// What a migration in place says of what stopped it; the cause is the underlying error.
  ///
  /// A full disk, a lock and the like are told as what they are.
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

  /// No mapping model leads from one model to the other, and none can be inferred.
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
