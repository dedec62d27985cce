import Effects
import Foundation

/// An angle in degrees.
public typealias CLLocationDegrees = Double
/// A distance in metres.
public typealias CLLocationDistance = Double
/// A radius of uncertainty in metres; negative means invalid.
public typealias CLLocationAccuracy = Double
/// A speed in metres per second; negative means invalid.
public typealias CLLocationSpeed = Double
/// A direction in degrees from north; negative means invalid.
public typealias CLLocationDirection = Double

/// A latitude and a longitude.
public struct CLLocationCoordinate2D: Hashable, Sendable {
  /// Degrees north of the equator.
  public var latitude: CLLocationDegrees
  /// Degrees east of the zero meridian.
  public var longitude: CLLocationDegrees

  /// Creates a coordinate at 0, 0.
  public init() {
    latitude = 0
    longitude = 0
  }

  /// Creates a coordinate.
  public init(latitude: CLLocationDegrees, longitude: CLLocationDegrees) {
    self.latitude = latitude
    self.longitude = longitude
  }
}

/// A place with its accuracies, course, speed and time: what a location field holds.
///
/// Core Location is absent outside Apple's platforms; this is the value part of its class.
public final class CLLocation: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
  // Unchecked: immutable after the initializer.

  /// The numbers of a location, as an archive and the wire keep them.
  package struct Fields: Hashable, Codable, Sendable {
    package var latitude: Double
    package var longitude: Double
    package var altitude: Double = 0
    package var horizontalAccuracy: Double = 0
    package var verticalAccuracy: Double = -1
    package var course: Double = -1
    package var speed: Double = -1
    package var timestamp: Date

    package init(latitude: Double, longitude: Double, timestamp: Date) {
      self.latitude = latitude
      self.longitude = longitude
      self.timestamp = timestamp
    }

    package var location: CLLocation { CLLocation(fields: self) }
  }

  package let fields: Fields

  /// The place on the globe.
  public var coordinate: CLLocationCoordinate2D {
    CLLocationCoordinate2D(latitude: fields.latitude, longitude: fields.longitude)
  }

  /// Metres above sea level.
  public var altitude: CLLocationDistance { fields.altitude }
  /// The radius of uncertainty of the place.
  public var horizontalAccuracy: CLLocationAccuracy { fields.horizontalAccuracy }
  /// The uncertainty of the altitude.
  public var verticalAccuracy: CLLocationAccuracy { fields.verticalAccuracy }
  /// The direction of travel.
  public var course: CLLocationDirection { fields.course }
  /// The speed of travel.
  public var speed: CLLocationSpeed { fields.speed }
  /// When the place was measured.
  public var timestamp: Date { fields.timestamp }

  package init(fields: Fields) {
    self.fields = fields
    super.init()
  }

  /// Creates a place measured now.
  public convenience init(latitude: CLLocationDegrees, longitude: CLLocationDegrees) {
    self.init(
      fields: Fields(
        latitude: latitude,
        longitude: longitude,
        timestamp: ProcessEffects.current.now
      )
    )
  }

  /// Creates a place with its accuracies and time.
  public convenience init(
    coordinate: CLLocationCoordinate2D,
    altitude: CLLocationDistance,
    horizontalAccuracy: CLLocationAccuracy,
    verticalAccuracy: CLLocationAccuracy,
    timestamp: Date
  ) {
    self.init(
      coordinate: coordinate,
      altitude: altitude,
      horizontalAccuracy: horizontalAccuracy,
      verticalAccuracy: verticalAccuracy,
      course: -1,
      speed: -1,
      timestamp: timestamp
    )
  }

  /// Creates a place with everything known about it.
  public init(
    coordinate: CLLocationCoordinate2D,
    altitude: CLLocationDistance,
    horizontalAccuracy: CLLocationAccuracy,
    verticalAccuracy: CLLocationAccuracy,
    course: CLLocationDirection,
    speed: CLLocationSpeed,
    timestamp: Date
  ) {
    var fields = Fields(
      latitude: coordinate.latitude,
      longitude: coordinate.longitude,
      timestamp: timestamp
    )
    fields.altitude = altitude
    fields.horizontalAccuracy = horizontalAccuracy
    fields.verticalAccuracy = verticalAccuracy
    fields.course = course
    fields.speed = speed
    self.fields = fields
    super.init()
  }

  /// Whether archives of this class are read securely.
  public static var supportsSecureCoding: Bool { true }

  /// Reads a place from an archive.
  public init?(coder: NSCoder) {
    guard let data = coder.decodeIfPresent(of: NSData.self, forKey: "Fields"),
      let fields = try? PropertyListDecoder().decode(
        Fields.self,
        from: Data(referencing: data)
      )
    else { return nil }
    self.fields = fields
    super.init()
  }

  /// Writes the place to an archive.
  public func encode(with coder: NSCoder) {
    let encoder = PropertyListEncoder()
    encoder.outputFormat = .binary
    guard let data = try? encoder.encode(fields) else { return }
    coder.encode(data as NSData, forKey: "Fields")
  }

  /// The place itself: it never changes.
  public func copy(with zone: NSZone? = nil) -> Any { self }

  /// The metres between two places along a great circle.
  public func distance(from location: CLLocation) -> CLLocationDistance {
    // The haversine formula on the mean radius of the Earth (IUGG).
    let radius = 6_371_008.8
    let radians = Double.pi / 180
    let latitudes = (fields.latitude * radians, location.fields.latitude * radians)
    let rise = latitudes.1 - latitudes.0
    let turn = (location.fields.longitude - fields.longitude) * radians
    let half =
      sin(rise / 2) * sin(rise / 2)
      + cos(latitudes.0) * cos(latitudes.1) * sin(turn / 2) * sin(turn / 2)
    return 2 * radius * asin(min(1, half.squareRoot()))
  }

  /// Whether the other object is a location with the same numbers.
  public override func isEqual(_ object: Any?) -> Bool {
    (object as? CLLocation)?.fields == fields
  }

  /// A hash of the numbers.
  public override var hash: Int { fields.hashValue }

  /// The form Core Location prints.
  public override var description: String {
    "<\(signed(fields.latitude)),\(signed(fields.longitude))> +/- "
      + "\(fields.horizontalAccuracy)m (speed \(fields.speed) mps / course \(fields.course))"
  }

  private func signed(_ degrees: Double) -> String {
    String(format: "%+.8f", degrees)
  }
}
