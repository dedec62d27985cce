import Foundation

/// The kind of a batch insertion's result.
public enum NSBatchInsertRequestResultType: UInt, Sendable, Hashable {
  /// Whether it succeeded, as a Boolean.
  case statusOnly = 0
  /// The identifiers of the inserted objects, and of the ones that a merge policy updated.
  case objectIDs = 1
  /// The number of rows.
  case count = 2
}

/// The result of a batch insertion.
open class NSBatchInsertResult: NSPersistentStoreResult {
  /// The kind of the result.
  public let resultType: NSBatchInsertRequestResultType
  /// A Boolean, an array of `NSManagedObjectID` or a number, by the result type.
  public let result: Any?

  init(resultType: NSBatchInsertRequestResultType, result: Any?) {
    self.resultType = resultType
    self.result = result
    super.init()
  }
}
