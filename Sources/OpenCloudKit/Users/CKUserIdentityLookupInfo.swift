import CloudKitWebServices
import Foundation

extension CKUserIdentity {
  /// The criterion of a user look-up.
  public typealias LookupInfo = CKUserIdentityLookupInfo
}

// Not nested, for the archives' sake: see `CKRecordID`.

/// The criterion of a user look-up: an email address, a phone number or a user record.
public final class CKUserIdentityLookupInfo: NSObject, NSSecureCoding, NSCopying,
  @unchecked Sendable
{
  // Unchecked: immutable after the initializer.

  /// The email address.
  public let emailAddress: String?
  /// The phone number.
  public let phoneNumber: String?
  /// The user record.
  public let userRecordID: CKRecord.ID?

  private init(emailAddress: String?, phoneNumber: String?, userRecordID: CKRecord.ID?) {
    self.emailAddress = emailAddress
    self.phoneNumber = phoneNumber
    self.userRecordID = userRecordID
    super.init()
  }

  /// Creates a look-up by an email address.
  public convenience init(emailAddress: String) {
    self.init(emailAddress: emailAddress, phoneNumber: nil, userRecordID: nil)
  }

  /// Creates a look-up by a phone number.
  public convenience init(phoneNumber: String) {
    self.init(emailAddress: nil, phoneNumber: phoneNumber, userRecordID: nil)
  }

  /// Creates a look-up by a user record.
  public convenience init(userRecordID: CKRecord.ID) {
    self.init(emailAddress: nil, phoneNumber: nil, userRecordID: userRecordID)
  }

  /// Creates look-ups by email addresses.
  public class func lookupInfos(withEmails emails: [String]) -> [CKUserIdentity.LookupInfo] {
    emails.map { CKUserIdentity.LookupInfo(emailAddress: $0) }
  }

  /// Creates look-ups by phone numbers.
  public class func lookupInfos(
    withPhoneNumbers phoneNumbers: [String]
  ) -> [CKUserIdentity.LookupInfo] {
    phoneNumbers.map { CKUserIdentity.LookupInfo(phoneNumber: $0) }
  }

  /// Creates look-ups by user records.
  public class func lookupInfos(with recordIDs: [CKRecord.ID]) -> [CKUserIdentity.LookupInfo] {
    recordIDs.map { CKUserIdentity.LookupInfo(userRecordID: $0) }
  }

  // MARK: The wire

  /// Reads a look-up of a reply; nil if it has no criterion.
  package convenience init?(wire: LookupInfo) {
    let name = wire.userRecordName.flatMap { $0.isEmpty ? nil : $0 }
    guard wire.emailAddress != nil || wire.phoneNumber != nil || name != nil else { return nil }
    self.init(
      emailAddress: wire.emailAddress,
      phoneNumber: wire.phoneNumber,
      userRecordID: name.map { CKRecord.ID(recordName: $0) }
    )
  }

  package var wire: LookupInfo {
    LookupInfo(
      emailAddress: emailAddress,
      phoneNumber: phoneNumber,
      userRecordName: userRecordID?.recordName
    )
  }

  /// Whether both criteria match: email addresses are compared without regard to case.
  func finds(_ other: CKUserIdentity.LookupInfo) -> Bool {
    if let own = emailAddress, let others = other.emailAddress {
      return own.lowercased() == others.lowercased()
    }
    if let phoneNumber { return phoneNumber == other.phoneNumber }
    if let userRecordID { return userRecordID.recordName == other.userRecordID?.recordName }
    return false
  }

  // MARK: Archives

  /// Whether archives of this class are read securely.
  public static var supportsSecureCoding: Bool { true }

  /// Reads a look-up from an archive.
  public convenience init?(coder: NSCoder) {
    self.init(
      emailAddress: coder.decodeString(forKey: "EmailAddress"),
      phoneNumber: coder.decodeString(forKey: "PhoneNumber"),
      userRecordID: coder.decodeIfPresent(of: CKRecord.ID.self, forKey: "UserRecordID")
    )
  }

  /// Writes the look-up to an archive.
  public func encode(with coder: NSCoder) {
    coder.encodeIfPresent(emailAddress as NSString?, forKey: "EmailAddress")
    coder.encodeIfPresent(phoneNumber as NSString?, forKey: "PhoneNumber")
    coder.encodeIfPresent(userRecordID, forKey: "UserRecordID")
  }

  /// The object itself: it never changes.
  public func copy(with zone: NSZone? = nil) -> Any { self }

  /// Whether the other object has the same criterion.
  public override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? CKUserIdentity.LookupInfo else { return false }
    return emailAddress == other.emailAddress && phoneNumber == other.phoneNumber
      && userRecordID == other.userRecordID
  }

  /// A hash of the criterion.
  public override var hash: Int {
    var hasher = Hasher()
    hasher.combine(emailAddress)
    hasher.combine(phoneNumber)
    hasher.combine(userRecordID)
    return hasher.finalize()
  }

  /// The form CloudKit prints, without the address itself: it must not reach a log.
  public override var description: String {
    let kind =
      emailAddress != nil ? "emailAddress" : phoneNumber != nil ? "phoneNumber" : "userRecordID"
    return "<CKUserIdentityLookupInfo: \(RecordFormatter.address(of: self)); \(kind)>"
  }
}
