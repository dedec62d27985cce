import Foundation

extension Array {
  /// The elements sorted by the descriptors.
  ///
  /// Equal elements keep their order. Each value is read once, so that n objects cost n key paths
  /// and not n log n.
  package func sorted(
    using descriptors: [NSSortDescriptor],
    object: (Element) -> Any
  ) -> [Element] {
    guard !descriptors.isEmpty, count > 1 else { return self }
    let keys = descriptors.map { descriptor in
      descriptor.sortKey.flatMap { $0.comparator == nil ? $0 : nil }
    }
    let rows = map { element in
      let object = object(element)
      return (object: object, values: keys.map { $0?.value(of: object) })
    }
    let order = indices.sorted { left, right in
      for (index, descriptor) in descriptors.enumerated() {
        let result: ComparisonResult
        if let key = keys[index], let first = rows[left].values[index],
          let second = rows[right].values[index]
        {
          result = key.order(first, second)
        } else {
          result = descriptor.compare(rows[left].object, to: rows[right].object)
        }
        if result != .orderedSame { return result == .orderedAscending }
      }
      return left < right
    }
    return order.map { self[$0] }
  }
}
