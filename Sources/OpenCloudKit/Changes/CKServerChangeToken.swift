import Foundation

/// A place in the feed of changes of a database or a zone.
///
/// ```swift
/// var moreComing = true
/// while moreComing {
///   let changes = try await database.recordZoneChanges(inZoneWith: zoneID, since: token)
///   for (recordID, result) in changes.modificationResultsByID {
///     texts[recordID] = try result.get().record["text"]
///   }
///   for deletion in changes.deletions { texts[deletion.recordID] = nil }
///   token = changes.changeToken  // keep it together with the texts
///   moreComing = changes.moreComing
/// }
/// ```
public final class CKServerChangeToken: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
  // Unchecked: immutable after the initializer.

  /// The service's own text for the place.
  package let syncToken: String

  /// Wraps the service's text.
  package init(syncToken: String) {
    self.syncToken = syncToken
    super.init()
  }

  /// Whether archives of this class are read securely.
  public static var supportsSecureCoding: Bool { true }

  /// Reads a token from an archive.
  ///
  /// A token that Apple's CloudKit archived is read too. No other service can continue it: a fetch
  /// with it fails with `CKError.changeTokenExpired`, upon which an app fetches without a token.
  public init?(coder: NSCoder) {
    if let syncToken = coder.decodeString(forKey: "SyncToken") {
      self.syncToken = syncToken
    } else if let data = coder.decodeIfPresent(of: NSData.self, forKey: "ChangeTokenData") {
      // Apple's web services write the same bytes in this form.
      syncToken = data.base64EncodedString()
    } else {
      return nil
    }
    super.init()
  }

  /// Writes the token to an archive.
  public func encode(with coder: NSCoder) {
    coder.encode(syncToken as NSString, forKey: "SyncToken")
  }

  /// The token itself: it never changes.
  public func copy(with zone: NSZone? = nil) -> Any { self }

  /// Whether the other object is a token of the same place.
  public override func isEqual(_ object: Any?) -> Bool {
    (object as? CKServerChangeToken)?.syncToken == syncToken
  }

  /// A hash of the token.
  public override var hash: Int { syncToken.hashValue }

  /// The form CloudKit prints.
  public override var description: String {
    "<CKServerChangeToken: \(RecordFormatter.address(of: self)); data=\(syncToken)>"
  }
}
