import Foundation

/// What the result of a batch insertion says.
public enum NSBatchInsertRequestResultType: UInt, Sendable, Hashable {
  /// Whether it worked, as a Boolean.
  case statusOnly = 0
  /// The identifiers of the inserted and, where a merge policy had them updated, of the updated
  /// objects.
  case objectIDs = 1
  /// How many there are.
  case count = 2
}

/// What a batch insertion did.
open class NSBatchInsertResult: NSPersistentStoreResult {
  /// What the request asked for.
  public let resultType: NSBatchInsertRequestResultType
  /// A Boolean, an array of `NSManagedObjectID` or a number, as the result type says.
  public let result: Any?

  init(resultType: NSBatchInsertRequestResultType, result: Any?) {
    self.resultType = resultType
    self.result = result
    super.init()
  }
}
