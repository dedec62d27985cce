import Foundation

/// The kind of a batch update's result.
public enum NSBatchUpdateRequestResultType: UInt, Sendable, Hashable {
  /// Whether it succeeded, as a Boolean.
  case statusOnlyResultType = 0
  /// The identifiers of the updated objects.
  case updatedObjectIDsResultType = 1
  /// The number of updated objects.
  case updatedObjectsCountResultType = 2
}

/// The result of a batch update.
open class NSBatchUpdateResult: NSPersistentStoreResult {
  /// The kind of the result.
  public let resultType: NSBatchUpdateRequestResultType
  /// A Boolean, an array of `NSManagedObjectID` or a number, by the result type.
  public let result: Any?

  init(resultType: NSBatchUpdateRequestResultType, result: Any?) {
    self.resultType = resultType
    self.result = result
    super.init()
  }
}
