import CloudKitWebServices
import Foundation

/// A record's position in a query's order; the record's name, then its zone, break ties.
struct QueryPosition: Codable, Hashable, Sendable {
  var keys: [Data]
  var name: String
  var zone: Int64

  init(keys: [Data], _ record: RecordKey) {
    self.keys = keys
    name = record.name
    zone = record.zone.rawValue
  }

  var record: RecordKey { RecordKey(zone: ZoneNumber(zone), name: name) }
}

/// The order of a query's results.
///
/// A missing value sorts first. A list sorts by its least element, or by its greatest in descending
/// order. Ties are sorted by name in the direction of the first key, as in the index.
struct QueryOrder: Sendable {
  struct Key: Sendable {
    var field: QueryField
    var isAscending: Bool
    /// Sorts by the distance from this location; a record without a location sorts last.
    var place: LocationValue?
  }

  var keys: [Key]

  /// The index whose order starts with this order's first key.
  var index: RecordIndex? {
    guard let first = keys.first, first.place == nil else { return nil }
    return .values(first.field.name)
  }

  var isDescending: Bool { keys.first.map { !$0.isAscending } ?? false }

  func position(of record: StoredRecord, _ fields: [String: FieldValue]) -> QueryPosition {
    let places = keys.map { key in
      if let place = key.place {
        let distance = fields[key.field.name]?.content.location.map { place.distance(to: $0) }
        return IndexValue.real(distance ?? .infinity).orderedBytes
      }
      let found = RecordIndex.values(key.field.name).keys(of: record, fields)
      return (key.isAscending ? found.first : found.last)?.bytes ?? Data()
    }
    return QueryPosition(keys: places, record.key)
  }

  func precedes(_ left: QueryPosition, _ right: QueryPosition) -> Bool {
    for (key, pair) in zip(keys, zip(left.keys, right.keys)) where pair.0 != pair.1 {
      return pair.0.lexicographicallyPrecedes(pair.1) == key.isAscending
    }
    if left.name != right.name {
      return left.name.utf8.lexicographicallyPrecedes(right.name.utf8) != isDescending
    }
    return left.zone != right.zone && (left.zone < right.zone) != isDescending
  }
}

extension LocationValue {
  private static let earthRadius = 6_371_008.8

  /// Along a meridian.
  static let metresPerDegree = earthRadius * .pi / 180

  /// Metres along a great circle of a sphere of the Earth's mean radius.
  func distance(to other: LocationValue) -> Double {
    let radians = Double.pi / 180
    let latitude = (other.latitude - self.latitude) * radians
    let longitude = (other.longitude - self.longitude) * radians
    let half =
      sin(latitude / 2) * sin(latitude / 2)
      + cos(self.latitude * radians) * cos(other.latitude * radians)
      * sin(longitude / 2) * sin(longitude / 2)
    let whole = min(1, max(0, half))
    return Self.earthRadius * 2 * atan2(whole.squareRoot(), (1 - whole).squareRoot())
  }
}
