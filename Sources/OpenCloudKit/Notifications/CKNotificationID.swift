import Foundation

// Not nested, for the archives' sake: see `CKRecordID`.

/// The identifier of a notification.
public final class CKNotificationID: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
  // Unchecked: immutable after the initializer.

  private let text: String

  init(_ text: String) {
    self.text = text
    super.init()
  }

  /// Whether archives of this class are read securely.
  public static var supportsSecureCoding: Bool { true }

  /// Reads an identifier from an archive.
  public convenience init?(coder: NSCoder) {
    guard let text = coder.decodeString(forKey: "NotificationID") else { return nil }
    self.init(text)
  }

  /// Writes the identifier to an archive.
  public func encode(with coder: NSCoder) {
    coder.encode(text as NSString, forKey: "NotificationID")
  }

  /// The identifier itself: it never changes.
  public func copy(with zone: NSZone? = nil) -> Any { self }

  /// Whether the other object identifies the same notification.
  public override func isEqual(_ object: Any?) -> Bool {
    (object as? CKNotification.ID)?.text == text
  }

  /// A hash of the identifier.
  public override var hash: Int { text.hashValue }

  /// The form CloudKit prints.
  public override var description: String {
    "<CKNotificationID: \(RecordFormatter.address(of: self)); \(text)>"
  }
}
