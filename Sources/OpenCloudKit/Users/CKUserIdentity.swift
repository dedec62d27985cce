import CloudKitWebServices
import Foundation

/// A user, as far as the service reveals the identity.
public final class CKUserIdentity: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
  // Unchecked: immutable after the initializer.

  /// The user's record, if the service reveals it.
  public let userRecordID: CKRecord.ID?
  /// The look-up that found or can find the user.
  public let lookupInfo: CKUserIdentity.LookupInfo?
  /// The user's name, if the user allows it to be seen.
  public let nameComponents: PersonNameComponents?
  /// Whether the user has an account of the service.
  public let hasiCloudAccount: Bool

  /// The user's contacts in the address book: none, since there is no address book here.
  @available(*, deprecated, message: "There is no address book outside Apple's platforms")
  public var contactIdentifiers: [String] { [] }

  package init(
    userRecordID: CKRecord.ID?,
    lookupInfo: CKUserIdentity.LookupInfo?,
    nameComponents: PersonNameComponents?,
    hasiCloudAccount: Bool
  ) {
    self.userRecordID = userRecordID
    self.lookupInfo = lookupInfo
    self.nameComponents = nameComponents
    self.hasiCloudAccount = hasiCloudAccount
    super.init()
  }

  /// The identity of a user whose name and record are unknown: only an address is given.
  package convenience init(lookupInfo: CKUserIdentity.LookupInfo?) {
    self.init(
      userRecordID: lookupInfo?.userRecordID,
      lookupInfo: lookupInfo,
      nameComponents: nil,
      hasiCloudAccount: lookupInfo?.userRecordID != nil
    )
  }

  // MARK: The wire

  package convenience init(wire: UserIdentity) {
    let name = wire.userRecordName.flatMap { $0.isEmpty ? nil : $0 }
    self.init(
      userRecordID: name.map { CKRecord.ID(recordName: $0) },
      lookupInfo: wire.lookupInfo.flatMap(LookupInfo.init(wire:))
        ?? wire.emailAddress.map { LookupInfo(emailAddress: $0) },
      nameComponents: Self.components(wire),
      hasiCloudAccount: name != nil
    )
  }

  private static func components(_ wire: UserIdentity) -> PersonNameComponents? {
    var components = PersonNameComponents()
    components.givenName = wire.nameComponents?.givenName ?? wire.firstName
    components.familyName = wire.nameComponents?.familyName ?? wire.lastName
    components.middleName = wire.nameComponents?.middleName
    components.namePrefix = wire.nameComponents?.namePrefix
    components.nameSuffix = wire.nameComponents?.nameSuffix
    components.nickname = wire.nameComponents?.nickname
    return components == PersonNameComponents() ? nil : components
  }

  /// The identity in the wire's terms: a user record or a look-up.
  package var wire: UserIdentity {
    UserIdentity(userRecordName: userRecordID?.recordName, lookupInfo: lookupInfo?.wire)
  }

  // MARK: Archives

  /// A name in an archive.
  private struct Name: Codable {
    var givenName: String?
    var familyName: String?
    var middleName: String?
    var namePrefix: String?
    var nameSuffix: String?
    var nickname: String?

    init(_ components: PersonNameComponents) {
      givenName = components.givenName
      familyName = components.familyName
      middleName = components.middleName
      namePrefix = components.namePrefix
      nameSuffix = components.nameSuffix
      nickname = components.nickname
    }

    var components: PersonNameComponents {
      var components = PersonNameComponents()
      components.givenName = givenName
      components.familyName = familyName
      components.middleName = middleName
      components.namePrefix = namePrefix
      components.nameSuffix = nameSuffix
      components.nickname = nickname
      return components
    }
  }

  /// Whether archives of this class are read securely.
  public static var supportsSecureCoding: Bool { true }

  /// Reads an identity from an archive.
  public convenience init?(coder: NSCoder) {
    let name = coder.decodeIfPresent(of: NSData.self, forKey: "NameComponents").flatMap {
      try? PropertyListDecoder().decode(Name.self, from: Data(referencing: $0))
    }
    self.init(
      userRecordID: coder.decodeIfPresent(of: CKRecord.ID.self, forKey: "UserRecordID"),
      lookupInfo: coder.decodeIfPresent(of: LookupInfo.self, forKey: "LookupInfo"),
      nameComponents: name?.components,
      hasiCloudAccount: coder.integer(forKey: "HasICloudAccount") != 0
    )
  }

  /// Writes the identity to an archive.
  public func encode(with coder: NSCoder) {
    coder.encodeIfPresent(userRecordID, forKey: "UserRecordID")
    coder.encodeIfPresent(lookupInfo, forKey: "LookupInfo")
    coder.encode(hasiCloudAccount ? 1 : 0, forKey: "HasICloudAccount")
    guard let nameComponents,
      let data = try? PropertyListEncoder().encode(Name(nameComponents))
    else { return }
    coder.encode(data as NSData, forKey: "NameComponents")
  }

  /// The identity itself: it never changes.
  public func copy(with zone: NSZone? = nil) -> Any { self }

  /// Whether the other object is the same user, as far as both know.
  public override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? CKUserIdentity else { return false }
    return userRecordID == other.userRecordID && lookupInfo == other.lookupInfo
      && nameComponents == other.nameComponents && hasiCloudAccount == other.hasiCloudAccount
  }

  /// A hash of the identity.
  public override var hash: Int {
    var hasher = Hasher()
    hasher.combine(userRecordID)
    hasher.combine(lookupInfo)
    return hasher.finalize()
  }

  /// The form CloudKit prints, without name and address: they must not reach a log.
  public override var description: String {
    "<CKUserIdentity: \(RecordFormatter.address(of: self)); "
      + "userRecordID=\(userRecordID?.recordName ?? "(null)"), "
      + "hasiCloudAccount=\(hasiCloudAccount)>"
  }
}
