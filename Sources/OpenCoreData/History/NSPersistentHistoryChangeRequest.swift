import Foundation

/// A request to read the history of stores, or to delete it.
///
/// ```swift
/// let request = NSPersistentHistoryChangeRequest.fetchHistory(after: token)
/// let history = try context.execute(request) as? NSPersistentHistoryResult
/// for transaction in history?.result as? [NSPersistentHistoryTransaction] ?? [] {
///   for change in transaction.changes ?? [] where transaction.author == "import" {
///     names.append(change.changedObjectID.entity.name ?? "")
///   }
///   token = transaction.token  // keep it where the next launch finds it
/// }
/// ```
public class NSPersistentHistoryChangeRequest: NSPersistentStoreRequest {
  /// The start of a fetch, or the end of a deletion.
  enum Bound {
    case date(Date)
    case token(NSPersistentHistoryToken?)
  }

  /// The kind of the request's result.
  public var resultType = NSPersistentHistoryResultType.transactionsAndChanges
  /// A fetch request for the transactions or changes to return, or for the transactions to delete.
  ///
  /// A deletion without one deletes the transactions of all authors. One for changes is refused, because
  /// a transaction is deleted as a whole.
  public var fetchRequest: NSFetchRequest<any NSFetchRequestResult>?

  let bound: Bound
  let isDeletion: Bool

  required init(bound: Bound, isDeletion: Bool) {
    self.bound = bound
    self.isDeletion = isDeletion
    super.init()
    if isDeletion { resultType = .statusOnly }
  }

  /// The token that history is read after, if the request was created with one.
  public var token: NSPersistentHistoryToken? {
    if case .token(let token) = bound { return token }
    return nil
  }

  /// A request for the history after a date; a transaction of that very date is not in it.
  public class func fetchHistory(after date: Date) -> Self {
    self.init(bound: .date(date), isDeletion: false)
  }

  /// A request for the history after a token; nil fetches all of it.
  public class func fetchHistory(after token: NSPersistentHistoryToken?) -> Self {
    self.init(bound: .token(token), isDeletion: false)
  }

  /// A request for the history after a transaction; nil fetches all of it.
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

  /// A request that deletes the history before a date.
  public class func deleteHistory(before date: Date) -> Self {
    self.init(bound: .date(date), isDeletion: true)
  }

  /// A request that deletes the history before a token; nil deletes all of it.
  public class func deleteHistory(before token: NSPersistentHistoryToken?) -> Self {
    self.init(bound: .token(token), isDeletion: true)
  }

  /// A request that deletes the history before a transaction; nil deletes all of it.
  public class func deleteHistory(before transaction: NSPersistentHistoryTransaction?) -> Self {
    self.init(bound: .token(transaction?.token), isDeletion: true)
  }

  /// Throws if none of a token's stores is present, as after a store was replaced.
  private func requireKnownStore(among stores: [NSPersistentStore]) throws {
    guard !isDeletion, case .token(let token?) = bound, !token.transactionNumbers.isEmpty,
      !stores.contains(where: { token.transactionNumbers[$0.identifier ?? ""] != nil })
    else { return }
    throw StoreError(
      .historyTokenExpired,
      "The history token \(token) belongs to none of the stores.",
      remedy: "Read the objects themselves, then continue from the current token."
    )
  }

  /// Runs the request on stores, one after the other.
  package func run(on stores: [NSPersistentStore]) throws -> NSPersistentHistoryResult {
    try requireKnownStore(among: stores)
    let stores = stores.compactMap { $0 as? SQLiteStore }
    if isDeletion { return try delete(from: stores) }
    var transactions: [NSPersistentHistoryTransaction] = []
    let selection = HistorySelection(request: self)
    for store in stores {
      transactions += try store.history(
        after: bound,
        withChanges: selection.needsChanges,
        limit: selection.transactionLimit
      )
    }
    return NSPersistentHistoryResult(
      resultType: resultType,
      result: try selection.result(transactions)
    )
  }

  private func delete(from stores: [SQLiteStore]) throws -> NSPersistentHistoryResult {
    let selection = HistorySelection(request: self)
    if selection.selectsChanges {
      throw StoreError(
        .unsupportedRequest,
        "The deletion of history has a fetch request for changes.",
        remedy: "Use NSPersistentHistoryTransaction.fetchRequest: transactions are deleted whole."
      )
    }
    var selected: [String: [Int64]]?
    if fetchRequest != nil {
      // Selected among those of all stores before the bound: a limit is one for all of them.
      let all = try stores.flatMap {
        try $0.transactions(before: bound, withChanges: selection.readsChanges)
      }
      selected = Dictionary(grouping: selection.select(all), by: \.storeID)
        .mapValues { $0.map(\.transactionNumber) }
    }
    var count = 0
    for store in stores {
      let numbers = selected.map { $0[store.identifier ?? ""] ?? [] }
      count += try store.deleteHistory(before: bound, among: numbers)
    }
    let result = resultType == .count ? NSNumber(value: count) : NSNumber(value: true)
    return NSPersistentHistoryResult(resultType: resultType, result: result)
  }
}
