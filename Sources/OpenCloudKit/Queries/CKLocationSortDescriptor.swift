import Foundation

/// Orders records by their distance from a place, the nearest first.
///
/// ```swift
/// let brno = CLLocation(latitude: 49.2, longitude: 16.6)
/// let within200km = NSPredicate(
///   format: "distanceToLocation:fromLocation:(place, %@) < %f",
///   brno,
///   200_000.0
/// )
/// let query = CKQuery(recordType: "Note", predicate: within200km)
/// query.sortDescriptors = [CKLocationSortDescriptor(key: "place", relativeLocation: brno)]
/// let (nearest, _) = try await database.records(matching: query, inZoneWith: zoneID)
/// ```
public final class CKLocationSortDescriptor: NSSortDescriptor {
  /// The place.
  public let relativeLocation: CLLocation
  /// The field that holds the places of the records.
  package let fieldName: String

  /// Creates an order by the distance of a location field from a place.
  public init(key: String, relativeLocation: CLLocation) {
    fieldName = key
    self.relativeLocation = relativeLocation
    // Foundation's initializer needs a key path, which is unused: the service sorts the records.
    super.init(keyPath: \String.count, ascending: true)
  }

  /// Reads an order from an archive.
  public required init?(coder: NSCoder) {
    guard let key = coder.decodeString(forKey: "Key"),
      let place = coder.decodeIfPresent(of: CLLocation.self, forKey: "RelativeLocation")
    else { return nil }
    fieldName = key
    relativeLocation = place
    super.init(keyPath: \String.count, ascending: true)
  }

  /// Writes the order to an archive.
  public func encode(with coder: NSCoder) {
    coder.encode(fieldName as NSString, forKey: "Key")
    coder.encode(relativeLocation, forKey: "RelativeLocation")
  }
}
