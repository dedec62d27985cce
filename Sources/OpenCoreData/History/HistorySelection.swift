import Foundation

/// Selects the transactions or changes that a history request asks for.
struct HistorySelection {
  let request: NSPersistentHistoryChangeRequest

  func result(_ all: [NSPersistentHistoryTransaction]) throws -> Any {
    let transactions = select(all)
    switch request.resultType {
    case .statusOnly: return NSNumber(value: true)
    case .count:
      // Changes are counted, as Core Data documents it, unless the request is for transactions.
      return NSNumber(
        value: selectsTransactions
          ? transactions.count : changes(of: transactions).count
      )
    case .objectIDs:
      var seen: Set<NSManagedObjectID> = []
      return changes(of: transactions).map(\.changedObjectID)
        .filter { seen.insert($0).inserted }
    case .transactionsOnly:
      for transaction in transactions { transaction.changes = nil }
      return transactions
    case .changesOnly:
      let changes = changes(of: transactions)
      for transaction in transactions {
        // From here on the changes retain their transactions, and not vice versa.
        for change in transaction.changes ?? [] { change.keepTransaction() }
        transaction.changes = nil
      }
      return changes
    case .transactionsAndChanges: return transactions
    }
  }

  private func changes(
    of transactions: [NSPersistentHistoryTransaction]
  ) -> [NSPersistentHistoryChange] {
    let changes = transactions.flatMap { $0.changes ?? [] }
    return selectsChanges ? limited(sorted(changes)) : changes
  }

  var selectsChanges: Bool {
    request.fetchRequest?.entity?.name == HistoryEntities.change.name
  }

  /// Whether the request's predicate or order may ask for a transaction's changes.
  var readsChanges: Bool {
    guard let fetch = request.fetchRequest else { return false }
    let keys = fetch.sortDescriptors?.compactMap(\.key) ?? []
    // A block may ask for anything.
    let format = fetch.predicate?.formatString ?? ""
    return ["changes", "BLOCKPREDICATE", "<block>"].contains { format.contains($0) }
      || keys.contains { $0.hasPrefix("changes") }
  }

  /// Whether the result is made of changes, or chosen by them.
  var needsChanges: Bool {
    switch request.resultType {
    case .transactionsOnly, .statusOnly: selectsChanges || readsChanges
    case .count: !selectsTransactions || readsChanges
    case .objectIDs, .changesOnly, .transactionsAndChanges: true
    }
  }

  /// How many of the first transactions the result is made of; 0 for no limit.
  ///
  /// Only stores know it where they need not look into the transactions, and where these are in their own order.
  var transactionLimit: Int {
    guard selectsTransactions, let fetch = request.fetchRequest, fetch.fetchLimit > 0,
      fetch.predicate == nil, fetch.sortDescriptors?.isEmpty ?? true
    else { return 0 }
    let (last, isHuge) = fetch.fetchLimit.addingReportingOverflow(max(0, fetch.fetchOffset))
    return isHuge ? 0 : last
  }

  private var selectsTransactions: Bool { request.fetchRequest != nil && !selectsChanges }

  /// The transactions that match, or those with changes that match.
  func select(
    _ all: [NSPersistentHistoryTransaction]
  ) -> [NSPersistentHistoryTransaction] {
    guard let fetch = request.fetchRequest else { return all }
    guard selectsChanges else {
      let matching = fetch.predicate.map { predicate in
        all.filter { predicate.evaluate(with: $0) }
      }
      return limited(sorted(matching ?? all))
    }
    guard let predicate = fetch.predicate else { return all }
    return all.filter { transaction in
      transaction.changes = transaction.changes?.filter { predicate.evaluate(with: $0) }
      return transaction.changes?.isEmpty == false
    }
  }

  private func sorted<Element: KeyValueCoding>(_ elements: [Element]) -> [Element] {
    guard let descriptors = request.fetchRequest?.sortDescriptors, !descriptors.isEmpty else {
      return elements
    }
    return elements.sorted(using: descriptors) { $0 }
  }

  private func limited<Element>(_ elements: [Element]) -> [Element] {
    guard let fetch = request.fetchRequest else { return elements }
    let rest = elements.dropFirst(fetch.fetchOffset)
    return Array(fetch.fetchLimit > 0 ? rest.prefix(fetch.fetchLimit) : rest)
  }
}
