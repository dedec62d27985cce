import CloudKitWebServices
import Effects
import Foundation
import Synchronization

/// The share of a record with its descendants, or of a zone: its participants and their
/// permissions.
///
/// ```swift
/// let folderID = CKRecord.ID(recordName: "holidays", zoneID: zone.zoneID)
/// let folder = CKRecord(recordType: "Folder", recordID: folderID)
/// folder["name"] = "Holidays"
///
/// let share = CKShare(rootRecord: folder)
/// share[CKShare.SystemFieldKey.title] = "Holidays"
/// share.publicPermission = .readWrite  // every user who has the link
/// let (saved, _) = try await database.modifyRecords(saving: [folder, share], deleting: [])
/// let link = (try saved[share.recordID]?.get() as? CKShare)?.url
/// ```
///
/// Save it together with its root. The participants other than the owner get access once they have
/// accepted; the shared records are then in their shared database.
public final class CKShare: CKRecord, @unchecked Sendable {
  // Unchecked: all mutable state is inside `sharing` and in the record's own lock.

  /// The names of the fields that a share may have besides the app's own.
  public enum SystemFieldKey {
    /// The title of the share, shown to users.
    public static let title: CKRecord.FieldKey = "cloudkit.title"
    /// The thumbnail image of the share, shown to users.
    public static let thumbnailImageData: CKRecord.FieldKey = "cloudkit.thumbnailImageData"
    /// The type of the shared content, as a uniform type identifier.
    public static let shareType: CKRecord.FieldKey = "cloudkit.type"
  }

  /// The state that only shares have.
  struct Sharing: Sendable {
    /// The root record of a share that is not saved yet.
    var rootRecordID: CKRecord.ID?
    var publicPermission = ParticipantPermission.none
    /// The participants, the owner first.
    var participants: [Participant]
    var currentUserID: Participant.ID?
    var url: URL?
    var allowsAccessRequests = false
    var requesters: [AccessRequester] = []
    var blockedIdentities: [BlockedIdentity] = []
    /// Whether a save sends the setting for access requests, and the answers to them: only
    /// Watershed's service knows these members.
    var opensRequests = false
    var answersRequests = false
    /// The permissions and participants of the fetched or saved share; nil for a new one.
    ///
    /// They are compared with the present ones, as a participant is an object that an app edits.
    var base: SharingBase?
  }

  private let sharing: Mutex<Sharing>

  // MARK: Creating shares

  /// Creates a share of a record and its descendants.
  ///
  /// Records of the default zone can't be shared: saving such a share fails.
  public convenience init(rootRecord: CKRecord) {
    let name = "Share-" + CKRecord.ID.newRecordName()
    self.init(
      rootRecord: rootRecord,
      shareID: CKRecord.ID(recordName: name, zoneID: rootRecord.recordID.zoneID)
    )
  }

  /// Creates a share of a record and its descendants, with an identifier.
  public init(rootRecord: CKRecord, shareID: CKRecord.ID) {
    precondition(
      rootRecord.recordID.zoneID == shareID.zoneID,
      "A share must be in the zone of its root record"
    )
    sharing = Mutex(Sharing(rootRecordID: rootRecord.recordID, participants: [Self.newOwner()]))
    super.init(
      recordType: CKRecord.SystemType.share,
      recordID: shareID,
      system: SystemFields(),
      fields: [:],
      checked: ()
    )
    rootRecord.noteShare(shareID)
  }

  /// Creates a share of a whole zone.
  public init(recordZoneID: CKRecordZone.ID) {
    sharing = Mutex(Sharing(participants: [Self.newOwner()]))
    super.init(
      recordType: CKRecord.SystemType.share,
      recordID: CKRecord.ID(recordName: CKRecordNameZoneWideShare, zoneID: recordZoneID),
      system: SystemFields(),
      fields: [:],
      checked: ()
    )
  }

  init(recordID: CKRecord.ID, system: SystemFields, fields: [FieldKey: Field], sharing: Sharing) {
    self.sharing = Mutex(sharing)
    super.init(
      recordType: CKRecord.SystemType.share,
      recordID: recordID,
      system: system,
      fields: fields,
      checked: ()
    )
  }

  /// The owner of a share that is not saved yet: the current user.
  private static func newOwner() -> Participant {
    let owner = Participant(
      identity: CKUserIdentity(
        userRecordID: CKRecord.ID(recordName: CKCurrentUserDefaultName),
        lookupInfo: nil,
        nameComponents: nil,
        hasiCloudAccount: true
      ),
      participantID: ProcessEffects.current.uuid().uuidString
    )
    owner.role = .owner
    owner.permission = .readWrite
    return owner.accepted()
  }

  // MARK: Participants

  /// The permission of every user who has the link.
  ///
  /// When a share with a public permission is saved, the service removes the invited participants
  /// who have not accepted; when one without is saved, it removes those who joined by the link.
  public var publicPermission: CKShare.ParticipantPermission {
    get { sharing.withLock { $0.publicPermission } }
    set { sharing.withLock { $0.publicPermission = newValue } }
  }

  /// The participants, the owner first.
  public var participants: [CKShare.Participant] { sharing.withLock { $0.participants } }

  /// The owner of the shared records.
  public var owner: CKShare.Participant {
    let participants = self.participants
    return participants.first { $0.role == .owner } ?? participants.first ?? Self.newOwner()
  }

  /// The participant who is the signed-in user, if there is one.
  public var currentUserParticipant: CKShare.Participant? {
    sharing.withLock { sharing in
      // The owner of a share that was never saved is the current user.
      guard let name = sharing.currentUserID else {
        return sharing.participants.first { $0.isCurrentUser }
      }
      return sharing.participants.first { $0.participantID == name }
    }
  }

  /// The link for users to open, once the share is saved.
  public var url: URL? { sharing.withLock { $0.url } }

  /// Adds a participant; it replaces an existing participant of the same person.
  public func addParticipant(_ participant: CKShare.Participant) {
    sharing.withLock { sharing in
      if let index = sharing.participants.firstIndex(where: { $0.isSamePerson(participant) }) {
        // The owner can't be replaced.
        guard sharing.participants[index].role != .owner else { return }
        sharing.participants[index] = participant
      } else {
        sharing.participants.append(participant)
      }
    }
  }

  /// Removes a participant, unless it is the owner.
  public func removeParticipant(_ participant: CKShare.Participant) {
    sharing.withLock { sharing in
      sharing.participants.removeAll {
        $0.role != .owner && $0.participantID == participant.participantID
      }
    }
  }

  // MARK: Access requests

  /// Whether users who have the link may request access; the default is false.
  ///
  /// Requests are possible if only invited users may open the share. The requester does not learn
  /// whether the share exists, or whether it allows requests. Stops the process if the signed-in
  /// user is neither the owner nor an administrator.
  public var allowsAccessRequests: Bool {
    get { sharing.withLock { $0.allowsAccessRequests } }
    set {
      changeRequests { sharing in
        sharing.allowsAccessRequests = newValue
        sharing.opensRequests = true
      }
    }
  }

  /// The users who requested access; only the owner and administrators see them.
  ///
  /// To approve one, fetch a participant for the `participantLookupInfo`, add it and save the
  /// share.
  public var requesters: [CKShare.AccessRequester] { sharing.withLock { $0.requesters } }

  /// The users who may not request access again.
  public var blockedIdentities: [CKShare.BlockedIdentity] {
    sharing.withLock { $0.blockedIdentities }
  }

  /// Denies access requests, once the share is saved; the requesters may ask again.
  ///
  /// Stops the process if the signed-in user is neither the owner nor an administrator.
  public func denyRequesters(_ requesters: [CKShare.AccessRequester]) {
    changeRequests { sharing in
      sharing.requesters.removeAll { requesters.contains($0) }
      sharing.answersRequests = true
    }
  }

  /// Blocks requesters, once the share is saved: they can't request access again, and those who are
  /// participants are removed.
  ///
  /// Stops the process if the signed-in user is neither the owner nor an administrator.
  public func blockRequesters(_ requesters: [CKShare.AccessRequester]) {
    changeRequests { sharing in
      sharing.requesters.removeAll { requesters.contains($0) }
      for requester in requesters {
        let user = requester.userIdentity.userRecordID?.recordName
        sharing.participants.removeAll {
          $0.role != .owner && user != nil && $0.userIdentity.userRecordID?.recordName == user
        }
        let blocked = BlockedIdentity(userIdentity: requester.userIdentity)
        if !sharing.blockedIdentities.contains(blocked) {
          sharing.blockedIdentities.append(blocked)
        }
      }
      sharing.answersRequests = true
    }
  }

  /// Unblocks users, once the share is saved: they may request access again.
  ///
  /// Stops the process if the signed-in user is neither the owner nor an administrator.
  public func unblockIdentities(_ blockedIdentities: [CKShare.BlockedIdentity]) {
    changeRequests { sharing in
      sharing.blockedIdentities.removeAll { blockedIdentities.contains($0) }
      sharing.answersRequests = true
    }
  }

  /// The link for one participant without an account yet, or nil.
  ///
  /// **Differs from CloudKit:** only a service that issues such links has one.
  public func oneTimeURL(for participantID: CKShare.Participant.ID) -> URL? {
    guard let url,
      participants.contains(where: { $0.participantID == participantID && $0.isOneTime })
    else { return nil }
    var components = URLComponents(url: url, resolvingAgainstBaseURL: false)
    components?.queryItems = [URLQueryItem(name: "participant", value: participantID)]
    return components?.url
  }

  // MARK: Internal state

  var sharingState: Sharing { sharing.withLock { $0 } }

  private func changeRequests(_ change: (inout Sharing) -> Void) {
    let role = currentUserParticipant?.role ?? .owner
    precondition(
      role == .owner || role == .administrator,
      "Only the owner or an administrator of a share answers requests to take part in it"
    )
    sharing.withLock { change(&$0) }
  }

  /// Replaces the state by the one that the service returned after a save, with the edits that were
  /// made meanwhile.
  func adopt(_ saved: Sharing, sent: SharingBase) {
    sharing.withLock { sharing in
      var saved = saved
      if saved.participants.isEmpty { saved.participants = sharing.participants }
      saved.url = saved.url ?? sharing.url
      saved.base = saved.content
      saved.apply(sharing, since: sent)
      sharing = saved
    }
  }

  // MARK: Archives

  /// A copy with the same contents and the same changed keys.
  public override func copy(with zone: NSZone? = nil) -> Any {
    let copy = CKShare(
      recordID: recordID,
      system: systemFields,
      fields: fields,
      sharing: sharingState
    )
    copy.takeChanges(of: self)
    return copy
  }

  /// Reads a share from an archive of the whole share, or of its system fields only.
  public required init?(coder: NSCoder) {
    var sharing = Sharing(participants: Self.list(of: Participant.self, "Participants", coder))
    sharing.rootRecordID = coder.decodeIfPresent(of: CKRecord.ID.self, forKey: "RootRecordID")
    sharing.publicPermission =
      ParticipantPermission(rawValue: coder.integer(forKey: "PublicPermission")) ?? .unknown
    sharing.currentUserID = coder.decodeString(forKey: "CurrentUserParticipantID")
    sharing.url = coder.decodeString(forKey: "ShareURL").flatMap { URL(string: $0) }
    sharing.allowsAccessRequests = coder.integer(forKey: "AllowsAccessRequests") != 0
    sharing.opensRequests = coder.integer(forKey: "OpensRequests") != 0
    sharing.answersRequests = coder.integer(forKey: "AnswersRequests") != 0
    sharing.requesters = Self.list(of: AccessRequester.self, "Requesters", coder)
    sharing.blockedIdentities = Self.list(of: BlockedIdentity.self, "BlockedIdentities", coder)
    if let base = coder.decodeIfPresent(of: NSData.self, forKey: "SharingBase") {
      sharing.base = try? WireCoding.decode(SharingBase.self, from: base as Data)
    } else if coder.integer(forKey: "SharingChanged") == 0 {
      // An archive of a former build.
      sharing.base = sharing.content
    }
    self.sharing = Mutex(sharing)
    super.init(coder: coder)
    guard recordType == CKRecord.SystemType.share else { return nil }
  }

  private static func list<Element: NSObject & NSSecureCoding>(
    of type: Element.Type,
    _ key: String,
    _ coder: NSCoder
  ) -> [Element] {
    guard coder.containsValue(forKey: key) else { return [] }
    return coder.decodeObject(of: [NSArray.self, type], forKey: key) as? [Element] ?? []
  }

  /// Writes the whole share to an archive.
  public override func encode(with coder: NSCoder) {
    super.encode(with: coder)
    encodeSharing(with: coder)
  }

  /// Writes the system fields and the sharing state, without the share's own fields, to an archive.
  public override func encodeSystemFields(with coder: NSCoder) {
    super.encodeSystemFields(with: coder)
    encodeSharing(with: coder)
  }

  private func encodeSharing(with coder: NSCoder) {
    let sharing = sharingState
    coder.encode(NSArray(array: sharing.participants), forKey: "Participants")
    coder.encodeIfPresent(sharing.rootRecordID, forKey: "RootRecordID")
    coder.encode(sharing.publicPermission.rawValue, forKey: "PublicPermission")
    coder.encodeIfPresent(sharing.currentUserID as NSString?, forKey: "CurrentUserParticipantID")
    coder.encodeIfPresent(sharing.url?.absoluteString as NSString?, forKey: "ShareURL")
    coder.encode(sharing.allowsAccessRequests ? 1 : 0, forKey: "AllowsAccessRequests")
    coder.encode(sharing.opensRequests ? 1 : 0, forKey: "OpensRequests")
    coder.encode(sharing.answersRequests ? 1 : 0, forKey: "AnswersRequests")
    coder.encode(NSArray(array: sharing.requesters), forKey: "Requesters")
    coder.encode(NSArray(array: sharing.blockedIdentities), forKey: "BlockedIdentities")
    coder.encodeIfPresent(
      sharing.base.flatMap { try? WireCoding.encode($0) } as NSData?,
      forKey: "SharingBase"
    )
    coder.encode(sharing.content == sharing.base ? 0 : 1, forKey: "SharingChanged")
  }
}

extension CKShare.Participant {
  /// Whether the participant is the current user.
  var isCurrentUser: Bool {
    userIdentity.userRecordID?.recordName == CKCurrentUserDefaultName
  }

  /// A copy of the participant that has accepted.
  func accepted() -> CKShare.Participant {
    CKShare.Participant(participantID: participantID, state: stateAccepted())
  }

  /// Whether two participants are the same person, even if one of them was looked up again.
  func isSamePerson(_ other: CKShare.Participant) -> Bool {
    if participantID == other.participantID { return true }
    if let own = userIdentity.userRecordID, let others = other.userIdentity.userRecordID {
      return own.recordName == others.recordName
    }
    guard let own = userIdentity.lookupInfo, let others = other.userIdentity.lookupInfo else {
      return false
    }
    return own.finds(others)
  }
}
