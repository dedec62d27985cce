import Effects
import Foundation

/// An operation on a database.
open class CKDatabaseOperation: CKOperation, @unchecked Sendable {
  // Unchecked: set before the operation is queued.

  /// The database, or nil for the private one of the default container.
  open var database: CKDatabase?

  /// The database that the operation works on, with the operation's limits.
  var target: CKDatabase {
    guard let database else { return targetContainer.privateCloudDatabase }
    return targetContainer.database(with: database.databaseScope)
  }

  override var targetContainer: CKContainer {
    guard let database else { return super.targetContainer }
    return pinned(database.container.limited(to: effectiveConfiguration.limits))
  }

  override var effects: Effects { database?.effects ?? super.effects }
}
