import CloudKitWebServices
import Foundation

/// A record's place in a query's order; the record name breaks ties.
struct QueryPosition: Codable, Hashable, Sendable {
  /// Nil: the record has no value there, and comes after all that have one.
  var keys: [QuerySortKey?]
  var name: String
  var zone: Int64
}

/// A value in an order.
enum QuerySortKey: Codable, Hashable, Sendable {
  case integer(Int64)
  case real(Double)
  case text(String)
  case bytes(Data)

  init(_ value: IndexValue) {
    switch value {
    case .integer(let value): self = .integer(value)
    case .real(let value): self = .real(value)
    case .text(let value): self = .text(value)
    case .bytes(let value): self = .bytes(value)
    }
  }

  var value: IndexValue {
    switch self {
    case .integer(let value): .integer(value)
    case .real(let value): .real(value)
    case .text(let value): .text(value)
    case .bytes(let value): .bytes(value)
    }
  }
}

/// The order of a query's results.
struct QueryOrder: Sendable {
  struct Key: Sendable {
    var field: QueryField
    var isAscending: Bool
    var place: LocationValue?
  }

  var keys: [Key]

  func position(of record: StoredRecord, _ fields: [String: FieldValue]) -> QueryPosition {
    QueryPosition(
      keys: keys.map { key in
        if let place = key.place {
          return fields[key.field.name]?.content.location.map { .real(place.distance(to: $0)) }
        }
        return record.indexValues(of: key.field.name, fields).first.map(QuerySortKey.init)
      },
      name: record.key.name,
      zone: record.key.zone.rawValue
    )
  }

  func precedes(_ left: QueryPosition, _ right: QueryPosition) -> Bool {
    for (key, pair) in zip(keys, zip(left.keys, right.keys)) {
      switch pair {
      case (nil, nil): continue
      case (nil, _): return false
      case (_, nil): return true
      case (let left?, let right?):
        let order = left.value.order(against: right.value)
        if order == .orderedSame { continue }
        return (order == .orderedAscending) == key.isAscending
      }
    }
    if left.name != right.name {
      return left.name.utf8.lexicographicallyPrecedes(right.name.utf8)
    }
    return left.zone < right.zone
  }
}

extension IndexValue {
  /// As SQLite orders them: numbers, then text by its bytes, then bytes.
  func order(against other: IndexValue) -> ComparisonResult {
    switch (self, other) {
    case (.integer(let left), .integer(let right)): return Self.order(left, right)
    case (.integer(let left), .real(let right)): return Self.order(Double(left), right)
    case (.real(let left), .integer(let right)): return Self.order(left, Double(right))
    case (.real(let left), .real(let right)): return Self.order(left, right)
    case (.text(let left), .text(let right)):
      if left.utf8.elementsEqual(right.utf8) { return .orderedSame }
      return left.utf8.lexicographicallyPrecedes(right.utf8)
        ? .orderedAscending : .orderedDescending
    case (.bytes(let left), .bytes(let right)):
      if left == right { return .orderedSame }
      return left.lexicographicallyPrecedes(right) ? .orderedAscending : .orderedDescending
    default: return Self.order(rank, other.rank)
    }
  }

  private var rank: Int {
    switch self {
    case .integer, .real: 0
    case .text: 1
    case .bytes: 2
    }
  }

  private static func order<Value: Comparable>(_ left: Value, _ right: Value) -> ComparisonResult {
    left < right ? .orderedAscending : left > right ? .orderedDescending : .orderedSame
  }
}

extension LocationValue {
  /// Metres along a great circle of a sphere of the Earth's mean radius.
  func distance(to other: LocationValue) -> Double {
    let radians = Double.pi / 180
    let latitude = (other.latitude - self.latitude) * radians
    let longitude = (other.longitude - self.longitude) * radians
    let half =
      sin(latitude / 2) * sin(latitude / 2)
      + cos(self.latitude * radians) * cos(other.latitude * radians)
      * sin(longitude / 2) * sin(longitude / 2)
    return 6_371_008.8 * 2 * atan2(half.squareRoot(), (1 - half).squareRoot())
  }
}
