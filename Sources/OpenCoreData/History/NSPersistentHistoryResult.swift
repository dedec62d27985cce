import Foundation

/// What a history request returned.
open class NSPersistentHistoryResult: NSPersistentStoreResult {
  /// What the request asked for.
  public let resultType: NSPersistentHistoryResultType
  /// Transactions, changes, identifiers, a count or a status, as the result type says.
  public let result: Any?

  init(resultType: NSPersistentHistoryResultType, result: Any?) {
    self.resultType = resultType
    self.result = result
    super.init()
  }
}
