import Foundation

/// Converts a fetch for an incremental store, and its results.
enum IncrementalFetch {
  static func request(
    _ fetch: RowFetch,
    _ store: NSPersistentStore
  ) -> NSFetchRequest<any NSFetchRequestResult> {
    let request = NSFetchRequest<any NSFetchRequestResult>()
    request.entity = fetch.entity
    request.includesSubentities = fetch.includesSubentities
    request.predicate = fetch.predicate
    request.sortDescriptors = fetch.sortDescriptors.isEmpty ? nil : fetch.sortDescriptors
    request.fetchLimit = fetch.limit
    request.fetchOffset = fetch.offset
    request.affectedStores = [store]
    switch fetch.kind {
    case .rows:
      break
    case .references:
      request.resultType = .managedObjectIDResultType
    case .count:
      request.resultType = .countResultType
    case .dictionaries(let shape):
      request.resultType = .dictionaryResultType
      request.propertiesToFetch = shape.properties
      request.propertiesToGroupBy = shape.groupBy.isEmpty ? nil : shape.groupBy
      request.havingPredicate = shape.having
      request.returnsDistinctResults = shape.isDistinct
    }
    return request
  }

  static func result(
    _ result: Any,
    of fetch: RowFetch,
    _ binding: StoreBinding
  ) throws -> RowFetchResult {
    let items = ExpressionValue.members(of: result) ?? []
    switch fetch.kind {
    case .rows:
      return .objects(items.compactMap { $0 as? NSManagedObject })
    case .references:
      return .references(items.compactMap { CustomRow.reference(to: $0, in: binding) })
    case .count:
      let number = (items.isEmpty ? result : items[0]) as? NSNumber
      if let number, !(items.count == 1 && items[0] is NSManagedObject) {
        return .count(number.intValue)
      }
      // A store that does not count returns the matches.
      return .count(items.count)
    case .dictionaries:
      return .dictionaries(
        items.compactMap { item in
          (item as? [String: Any]) ?? (item as? NSDictionary).map(Self.dictionary)
        }
      )
    }
  }

  private static func dictionary(_ dictionary: NSDictionary) -> [String: Any] {
    var result: [String: Any] = [:]
    for (key, value) in dictionary {
      if let key = key as? String { result[key] = value }
    }
    return result
  }
}
