import CloudKitWebServices
import Foundation

// Not nested, for the archives' sake: see `CKRecordID`.

/// The position at which a query continues, also after the app was launched again.
///
/// Outside Apple's platforms an archive names this class; Apple's CloudKit does not read it.
public final class CKQueryCursor: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
  // Unchecked: immutable after the initializer.

  let request: QueryRecordsRequest
  let zoneID: CKRecordZone.ID

  init(request: QueryRecordsRequest, zoneID: CKRecordZone.ID) {
    self.request = request
    self.zoneID = zoneID
    super.init()
  }

  /// Whether archives of this class are read securely.
  public static var supportsSecureCoding: Bool { true }

  /// Reads a cursor from an archive.
  public init?(coder: NSCoder) {
    guard let data = coder.decodeIfPresent(of: NSData.self, forKey: "Request"),
      let request = try? JSONDecoder().decode(
        QueryRecordsRequest.self,
        from: Data(referencing: data)
      ),
      let zoneID = coder.decodeIfPresent(of: CKRecordZone.ID.self, forKey: "ZoneID")
    else { return nil }
    self.request = request
    self.zoneID = zoneID
    super.init()
  }

  /// Writes the cursor to an archive.
  public func encode(with coder: NSCoder) {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    do {
      coder.encode(try encoder.encode(request) as NSData, forKey: "Request")
    } catch {
      preconditionFailure("A query's cursor can't be archived: \(error)")
    }
    coder.encode(zoneID, forKey: "ZoneID")
  }

  /// The cursor itself: it never changes.
  public func copy(with zone: NSZone? = nil) -> Any { self }

  /// Whether the other object is a cursor of the same query at the same position.
  public override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? CKQueryCursor else { return false }
    return request == other.request && zoneID == other.zoneID
  }

  /// A hash of the position and the zone.
  public override var hash: Int {
    var hasher = Hasher()
    hasher.combine(request.continuationMarker)
    hasher.combine(zoneID)
    return hasher.finalize()
  }
}
