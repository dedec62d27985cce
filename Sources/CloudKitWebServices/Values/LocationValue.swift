import Foundation

/// A location and its measurements.
package struct LocationValue: Codable, Hashable, Sendable {
  package var latitude: Double
  package var longitude: Double
  package var horizontalAccuracy: Double?
  package var verticalAccuracy: Double?
  package var altitude: Double?
  package var speed: Double?
  package var course: Double?
  /// Milliseconds since 1970.
  package var timestamp: Int64?

  /// Whether the coordinates are valid.
  package var isOnEarth: Bool { abs(latitude) <= 90 && abs(longitude) <= 180 }

  package init(
    latitude: Double,
    longitude: Double,
    horizontalAccuracy: Double? = nil,
    verticalAccuracy: Double? = nil,
    altitude: Double? = nil,
    speed: Double? = nil,
    course: Double? = nil,
    timestamp: Int64? = nil
  ) {
    self.latitude = latitude
    self.longitude = longitude
    self.horizontalAccuracy = horizontalAccuracy
    self.verticalAccuracy = verticalAccuracy
    self.altitude = altitude
    self.speed = speed
    self.course = course
    self.timestamp = timestamp
  }
}
