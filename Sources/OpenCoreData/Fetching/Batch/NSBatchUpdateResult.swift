import Foundation

/// What the result of a batch update says.
public enum NSBatchUpdateRequestResultType: UInt, Sendable, Hashable {
  /// Whether it worked, as a Boolean.
  case statusOnlyResultType = 0
  /// The identifiers of the changed objects.
  case updatedObjectIDsResultType = 1
  /// How many there are.
  case updatedObjectsCountResultType = 2
}

/// What a batch update did.
open class NSBatchUpdateResult: NSPersistentStoreResult {
  /// What the request asked for.
  public let resultType: NSBatchUpdateRequestResultType
  /// A Boolean, an array of `NSManagedObjectID` or a number, as the result type says.
  public let result: Any?

  init(resultType: NSBatchUpdateRequestResultType, result: Any?) {
    self.resultType = resultType
    self.result = result
    super.init()
  }
}
