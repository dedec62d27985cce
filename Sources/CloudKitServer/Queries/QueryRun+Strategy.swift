import CloudKitWebServices
import Foundation

/// The choice of a strategy: counted for the first page, read from the marker for the next ones.
extension QueryRun {
  func strategy(after marker: QueryMarker?) throws -> QueryStrategy {
    guard let marker else { return try chosenStrategy() }
    guard let strategy = marker.strategy else { return try formerStrategy(of: marker) }
    if strategy.walksCondition {
      let condition = strategy.condition.flatMap {
        plan.conditions.indices.contains($0) ? plan.conditions[$0] : nil
      }
      // The schema or the caller's rights may have changed, and with them the index.
      guard (condition == nil) == (strategy.condition == nil),
        index(of: condition).name == marker.source
      else { throw Self.outdatedMarker }
    }
    return strategy
  }

  /// The index of a condition, or that of all records of the type.
  func index(of condition: QueryCondition?) -> RecordIndex {
    condition?.index ?? QueryPlan.everything
  }

  static let outdatedMarker = ErrorDictionary(
    .badRequest,
    "the continuation marker is of a query that is run in another way now; begin the query again"
  )

  // MARK: The first page

  private func chosenStrategy() throws -> QueryStrategy {
    let best = try best(of: plan.narrowing)
    guard let index = plan.order.index else {
      guard let key = plan.order.keys.first else {
        return QueryStrategy(walk: .ofIndex, condition: best)
      }
      // No index has the farthest first: all matching records are sorted in memory.
      guard key.place != nil, key.isAscending else {
        return QueryStrategy(walk: .sorted, condition: best)
      }
      return try isFew(best)
        ? QueryStrategy(walk: .sorted, condition: best) : QueryStrategy(walk: .outward)
    }
    guard let best, plan.conditions[best].index != index, try isFew(best) else {
      return QueryStrategy(walk: .inOrder)
    }
    return QueryStrategy(walk: .sorted, condition: best)
  }

  /// The condition with the fewest matching entries, of the most selective ones.
  private func best(of conditions: [Int]) throws -> Int? {
    guard conditions.count > 1 else { return conditions.first }
    var best: (condition: Int, count: Int)?
    for condition in conditions.prefix(Self.countedConditions) {
      let found = try count(condition)
      if found < best?.count ?? .max { best = (condition, found) }
    }
    return best?.condition
  }

  /// Counting costs a statement for each value of a condition.
  private static let countedConditions = 4

  /// Whether the matching records of a condition can be sorted in memory.
  private func isFew(_ condition: Int?) throws -> Bool {
    try condition.map { try count($0) <= limits.recordsSortedInMemory } ?? false
  }

  /// The number of entries of a condition, counted up to a limit.
  private func count(_ number: Int) throws -> Int {
    let condition = plan.conditions[number]
    guard let index = condition.index else { return .max }
    let most = limits.recordsSortedInMemory + 1
    var count = 0
    for range in condition.ranges where count < most {
      try control.check()
      count += try snapshot.entries(in: id, walk(index, range, limit: most - count)).count
    }
    return count
  }

  // MARK: Markers of former builds

  /// The strategy of a marker that names none, as former builds made them.
  ///
  /// A position in an order has the same meaning for each strategy; one in an index, the position of
  /// a query without an order or the edge of a window, lies in the ranges of the condition that was
  /// walked.
  private func formerStrategy(of marker: QueryMarker) throws -> QueryStrategy {
    let ends = marker.window.map { $0.through ?? $0.from }
    if plan.order.keys.isEmpty {
      return QueryStrategy(
        walk: .ofIndex,
        condition: try condition(of: marker.source, at: marker.position)
      )
    }
    guard let ends else { return try chosenStrategy() }
    if plan.order.index != nil { return QueryStrategy(walk: .inOrder) }
    if ends.count > 1 { return QueryStrategy(walk: .outward) }
    return QueryStrategy(walk: .sorted, condition: try condition(of: nil, at: ends.first ?? nil))
  }

  /// The condition whose walk reached a position, in the index with this name; nil: in any.
  private func condition(of source: String?, at position: QueryPosition?) throws -> Int? {
    let candidates = plan.narrowing.filter { number in
      source == nil || plan.conditions[number].index?.name == source
    }
    if candidates.isEmpty, source == nil || source == QueryPlan.everything.name { return nil }
    let key = position?.entry?.key
    let walked = candidates.filter { number in
      key.map { key in plan.conditions[number].ranges.contains { $0.contains(key) } } ?? true
    }
    guard let first = walked.first else { throw Self.outdatedMarker }
    // A record has one entry of a single value: what follows it is the same in each of the ranges.
    guard walked.count == 1 || walked.allSatisfy({ plan.conditions[$0].isOfSingleValue }) else {
      throw Self.outdatedMarker
    }
    return first
  }
}

extension QueryCondition {
  /// Whether a record has one entry in the index of the condition.
  fileprivate var isOfSingleValue: Bool {
    guard case .values = index else { return false }
    return field?.schema.type.wireType?.isList != true
  }
}
