import Foundation

/// The result of a history request.
open class NSPersistentHistoryResult: NSPersistentStoreResult {
  /// The kind of the result.
  public let resultType: NSPersistentHistoryResultType
  /// Transactions, changes, identifiers, a count or a status, by the result type.
  public let result: Any?

  init(resultType: NSPersistentHistoryResultType, result: Any?) {
    self.resultType = resultType
    self.result = result
    super.init()
  }
}
