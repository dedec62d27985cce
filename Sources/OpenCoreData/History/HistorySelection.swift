import Foundation

/// Picks out of the transactions what a history request asks for.
struct HistorySelection {
  let request: NSPersistentHistoryChangeRequest

  func result(_ all: [NSPersistentHistoryTransaction]) throws -> Any {
    let transactions = select(all)
    switch request.resultType {
    case .statusOnly: return NSNumber(value: true)
    case .count: return NSNumber(value: transactions.count)
    case .objectIDs:
      var seen: Set<NSManagedObjectID> = []
      return transactions.flatMap { $0.changes ?? [] }.map(\.changedObjectID)
        .filter { seen.insert($0).inserted }
    case .transactionsOnly:
      for transaction in transactions { transaction.changes = nil }
      return transactions
    case .changesOnly:
      let changes = transactions.flatMap { $0.changes ?? [] }
      return selectsChanges ? limited(changes) : changes
    case .transactionsAndChanges: return transactions
    }
  }

  private var selectsChanges: Bool {
    request.fetchRequest?.entity?.name == HistoryEntities.change.name
  }

  /// The transactions that match, or those with changes that match.
  private func select(
    _ all: [NSPersistentHistoryTransaction]
  ) -> [NSPersistentHistoryTransaction] {
    guard let fetch = request.fetchRequest else { return all }
    guard selectsChanges else {
      let matching = fetch.predicate.map { predicate in
        all.filter { predicate.evaluate(with: $0) }
      }
      return limited(matching ?? all)
    }
    guard let predicate = fetch.predicate else { return all }
    return all.filter { transaction in
      transaction.changes = transaction.changes?.filter { predicate.evaluate(with: $0) }
      return transaction.changes?.isEmpty == false
    }
  }

  private func limited<Element>(_ elements: [Element]) -> [Element] {
    guard let fetch = request.fetchRequest else { return elements }
    let rest = elements.dropFirst(fetch.fetchOffset)
    return Array(fetch.fetchLimit > 0 ? rest.prefix(fetch.fetchLimit) : rest)
  }
}
