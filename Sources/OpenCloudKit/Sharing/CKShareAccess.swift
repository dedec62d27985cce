import CloudKitWebServices
import Foundation

extension CKShare {
  /// A user who requested access to a share.
  public typealias AccessRequester = CKShareAccessRequester
  /// A user who may not request access to a share again.
  public typealias BlockedIdentity = CKShareBlockedIdentity
}

// Not nested, for the archives' sake: see `CKRecordID`.

/// A user who requested access to a share.
public final class CKShareAccessRequester: NSObject, NSSecureCoding, NSCopying,
  @unchecked Sendable
{
  // Unchecked: immutable after the initializer.

  /// The requester's identity.
  public let userIdentity: CKUserIdentity
  /// The look-up that finds the participant to add, to approve the request.
  public let participantLookupInfo: CKUserIdentity.LookupInfo

  package init(userIdentity: CKUserIdentity, participantLookupInfo: CKUserIdentity.LookupInfo) {
    self.userIdentity = userIdentity
    self.participantLookupInfo = participantLookupInfo
    super.init()
  }

  /// Reads a requester of a reply; nil if it has no identity.
  convenience init?(wire: ShareParticipant) {
    guard let person = wire.userIdentity else { return nil }
    let identity = CKUserIdentity(wire: person)
    let info =
      identity.lookupInfo
      ?? identity.userRecordID.map(CKUserIdentity.LookupInfo.init(userRecordID:))
    guard let info else { return nil }
    self.init(userIdentity: identity, participantLookupInfo: info)
  }

  /// Whether archives of this class are read securely.
  public static var supportsSecureCoding: Bool { true }

  /// Reads a requester from an archive.
  public convenience init?(coder: NSCoder) {
    guard let identity = coder.decodeIfPresent(of: CKUserIdentity.self, forKey: "UserIdentity"),
      let info = coder.decodeIfPresent(
        of: CKUserIdentity.LookupInfo.self,
        forKey: "ParticipantLookupInfo"
      )
    else { return nil }
    self.init(userIdentity: identity, participantLookupInfo: info)
  }

  /// Writes the requester to an archive.
  public func encode(with coder: NSCoder) {
    coder.encode(userIdentity, forKey: "UserIdentity")
    coder.encode(participantLookupInfo, forKey: "ParticipantLookupInfo")
  }

  /// The requester itself: it never changes.
  public func copy(with zone: NSZone? = nil) -> Any { self }

  /// Whether the other object is the same person.
  public override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? CKShare.AccessRequester else { return false }
    return userIdentity == other.userIdentity
      && participantLookupInfo == other.participantLookupInfo
  }

  /// A hash of the identity.
  public override var hash: Int { userIdentity.hash }
}

/// A user who may not request access to a share again.
public final class CKShareBlockedIdentity: NSObject, NSSecureCoding, NSCopying,
  @unchecked Sendable
{
  // Unchecked: immutable after the initializer.

  /// The blocked user's identity.
  public let userIdentity: CKUserIdentity

  package init(userIdentity: CKUserIdentity) {
    self.userIdentity = userIdentity
    super.init()
  }

  /// Whether archives of this class are read securely.
  public static var supportsSecureCoding: Bool { true }

  /// Reads an identity from an archive.
  public convenience init?(coder: NSCoder) {
    guard let identity = coder.decodeIfPresent(of: CKUserIdentity.self, forKey: "UserIdentity")
    else { return nil }
    self.init(userIdentity: identity)
  }

  /// Writes the identity to an archive.
  public func encode(with coder: NSCoder) {
    coder.encode(userIdentity, forKey: "UserIdentity")
  }

  /// The object itself: it never changes.
  public func copy(with zone: NSZone? = nil) -> Any { self }

  /// Whether the other object is the same person.
  public override func isEqual(_ object: Any?) -> Bool {
    (object as? CKShare.BlockedIdentity)?.userIdentity == userIdentity
  }

  /// A hash of the identity.
  public override var hash: Int { userIdentity.hash }
}
