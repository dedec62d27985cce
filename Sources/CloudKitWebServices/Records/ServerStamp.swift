import Foundation

/// The user, time and device of a record's creation or change.
package struct ServerStamp: Codable, Hashable, Sendable {
  /// Milliseconds since 1970.
  package var timestamp: Int64
  package var userRecordName: String?
  /// Some clients ignore a stamp without it.
  package var deviceID: String?

  package init(
    timestamp: Int64,
    userRecordName: String? = nil,
    deviceID: String? = nil
  ) {
    self.timestamp = timestamp
    self.userRecordName = userRecordName
    self.deviceID = deviceID
  }
}
