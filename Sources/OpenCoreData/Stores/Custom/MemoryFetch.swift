import Foundation

/// Evaluates a fetch with objects in memory.
struct MemoryFetch {
  let request: RowFetch

  init(_ request: RowFetch) {
    self.request = request
  }

  /// The matching candidates in order, within the limit; a fetch of dictionaries is limited after
  /// grouping.
  func matches<Candidate: AnyObject>(among candidates: [Candidate]) -> [Candidate] {
    var found = candidates
    if let predicate = request.predicate {
      found = found.filter { predicate.evaluate(with: $0) }
    }
    if !request.sortDescriptors.isEmpty {
      found = found.sorted(using: request.sortDescriptors) { $0 }
    }
    if case .dictionaries = request.kind { return found }
    return Self.window(found, of: request)
  }

  static func window<Element>(_ found: [Element], of request: RowFetch) -> [Element] {
    let rest = found.dropFirst(max(0, request.offset))
    return Array(request.limit > 0 ? rest.prefix(request.limit) : rest)
  }
}
