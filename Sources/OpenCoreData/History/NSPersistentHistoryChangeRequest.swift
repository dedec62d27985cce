import Foundation

/// A request to read the history of stores, or to delete it.
public class NSPersistentHistoryChangeRequest: NSPersistentStoreRequest {
  /// From where to where.
  enum Bound {
    case date(Date)
    case token(NSPersistentHistoryToken?)
  }

  /// What the request returns.
  public var resultType = NSPersistentHistoryResultType.transactionsAndChanges
  /// Which transactions or changes are returned, as a fetch of their entities.
  public var fetchRequest: NSFetchRequest<any NSFetchRequestResult>?

  let bound: Bound
  let isDeletion: Bool

  required init(bound: Bound, isDeletion: Bool) {
    self.bound = bound
    self.isDeletion = isDeletion
    super.init()
    if isDeletion { resultType = .statusOnly }
  }

  /// The place after which history is read, where the request was made with one.
  public var token: NSPersistentHistoryToken? {
    if case .token(let token) = bound { return token }
    return nil
  }

  /// A request for what happened after a moment.
  public class func fetchHistory(after date: Date) -> Self {
    self.init(bound: .date(date), isDeletion: false)
  }

  /// A request for what happened after a place in the history; nil asks for all of it.
  public class func fetchHistory(after token: NSPersistentHistoryToken?) -> Self {
    self.init(bound: .token(token), isDeletion: false)
  }

  /// A request for what happened after a transaction; nil asks for all of the history.
  public class func fetchHistory(after transaction: NSPersistentHistoryTransaction?) -> Self {
    self.init(bound: .token(transaction?.token), isDeletion: false)
  }

  /// A request for the transactions or the changes that a fetch request describes.
  ///
  /// Differs from Core Data: takes a request of any result type, because those types do not convert
  /// into each other here.
  public class func fetchHistory<ResultType>(
    withFetch fetchRequest: NSFetchRequest<ResultType>
  ) -> Self {
    let request = self.init(bound: .token(nil), isDeletion: false)
    let copy = NSFetchRequest<any NSFetchRequestResult>()
    copy.entity = fetchRequest.entity
    copy.predicate = fetchRequest.predicate
    copy.sortDescriptors = fetchRequest.sortDescriptors
    copy.fetchLimit = fetchRequest.fetchLimit
    copy.fetchOffset = fetchRequest.fetchOffset
    request.fetchRequest = copy
    return request
  }

  /// A request that deletes what happened before a moment.
  public class func deleteHistory(before date: Date) -> Self {
    self.init(bound: .date(date), isDeletion: true)
  }

  /// A request that deletes what happened before a place in the history; nil deletes all of it.
  public class func deleteHistory(before token: NSPersistentHistoryToken?) -> Self {
    self.init(bound: .token(token), isDeletion: true)
  }

  /// A request that deletes what happened before a transaction; nil deletes all of the history.
  public class func deleteHistory(before transaction: NSPersistentHistoryTransaction?) -> Self {
    self.init(bound: .token(transaction?.token), isDeletion: true)
  }

  /// A token of stores that are all gone, as after one was replaced, says nothing about these.
  private func requireKnownStore(among stores: [NSPersistentStore]) throws {
    guard !isDeletion, case .token(let token?) = bound, !token.transactionNumbers.isEmpty,
      !stores.contains(where: { token.transactionNumbers[$0.identifier ?? ""] != nil })
    else { return }
    throw StoreError(
      .historyTokenExpired,
      "The history token \(token) belongs to none of the stores.",
      remedy: "Read the objects themselves, then go on from the current token."
    )
  }

  /// Runs the request on stores, one after the other.
  package func run(on stores: [NSPersistentStore]) throws -> NSPersistentHistoryResult {
    try requireKnownStore(among: stores)
    var transactions: [NSPersistentHistoryTransaction] = []
    for store in stores {
      guard let store = store as? SQLiteStore else { continue }
      if isDeletion {
        try store.deleteHistory(before: bound)
      } else {
        transactions += try store.history(after: bound)
      }
    }
    if isDeletion {
      return NSPersistentHistoryResult(resultType: resultType, result: NSNumber(value: true))
    }
    return NSPersistentHistoryResult(
      resultType: resultType,
      result: try HistorySelection(request: self).result(transactions)
    )
  }
}
