import Foundation

/// The kind of a batch deletion's result.
public enum NSBatchDeleteRequestResultType: UInt, Sendable, Hashable {
  /// Whether it succeeded, as a Boolean.
  case resultTypeStatusOnly = 0
  /// The identifiers of the objects that were deleted.
  case resultTypeObjectIDs = 1
  /// The number of deleted objects.
  case resultTypeCount = 2
}

/// The result of a batch deletion.
open class NSBatchDeleteResult: NSPersistentStoreResult {
  /// The kind of the result.
  public let resultType: NSBatchDeleteRequestResultType
  /// A Boolean, an array of `NSManagedObjectID` or a number, by the result type.
  public let result: Any?

  init(resultType: NSBatchDeleteRequestResultType, result: Any?) {
    self.resultType = resultType
    self.result = result
    super.init()
  }
}
