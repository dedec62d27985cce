import Foundation

/// What the result of a batch deletion says.
public enum NSBatchDeleteRequestResultType: UInt, Sendable, Hashable {
  /// Whether it worked, as a Boolean.
  case resultTypeStatusOnly = 0
  /// The identifiers of the objects that were deleted.
  case resultTypeObjectIDs = 1
  /// How many there were.
  case resultTypeCount = 2
}

/// What a batch deletion did.
open class NSBatchDeleteResult: NSPersistentStoreResult {
  /// What the request asked for.
  public let resultType: NSBatchDeleteRequestResultType
  /// A Boolean, an array of `NSManagedObjectID` or a number, as the result type says.
  public let result: Any?

  init(resultType: NSBatchDeleteRequestResultType, result: Any?) {
    self.resultType = resultType
    self.result = result
    super.init()
  }
}
