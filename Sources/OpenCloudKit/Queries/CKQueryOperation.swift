import CloudKitWebServices
import Foundation

/// Names what belongs to running queries.
public enum CKQueryOperation {
  /// Lets the service choose how many results it returns at a time.
  public static let maximumResults: Int = 0

  /// Where a query goes on.
  public final class Cursor: NSObject, NSCopying, @unchecked Sendable {
    // Unchecked: nothing changes after the initializer.

    let request: QueryRecordsRequest
    let zoneID: CKRecordZone.ID

    init(request: QueryRecordsRequest, zoneID: CKRecordZone.ID) {
      self.request = request
      self.zoneID = zoneID
      super.init()
    }

    /// The cursor itself: it never changes.
    public func copy(with zone: NSZone? = nil) -> Any { self }
  }
}
