import CloudKitWebServices
import Foundation
import Synchronization

/// What is shared and with whom: a record that a shared record, or a zone, has beside it.
///
/// Save it together with its root. The participants other than the owner take part once they have
/// accepted; then what is shared is in their shared database.
public final class CKShare: CKRecord, @unchecked Sendable {
  // Unchecked: all that changes is inside `sharing` and what the record guards itself.

  /// The names of the fields that a share may have besides the app's own.
  public enum SystemFieldKey {
    /// What people see as the name of what is shared.
    public static let title: CKRecord.FieldKey = "cloudkit.title"
    /// A picture of what is shared.
    public static let thumbnailImageData: CKRecord.FieldKey = "cloudkit.thumbnailImageData"
    /// What kind of thing is shared, as a type identifier.
    public static let shareType: CKRecord.FieldKey = "cloudkit.type"
  }

  /// What a share has that other records have not.
  struct Sharing: Sendable {
    /// The root of a share that is to be made.
    var rootRecordID: CKRecord.ID?
    var publicPermission = ParticipantPermission.none
    /// The owner first.
    var participants: [Participant]
    var currentUserID: Participant.ID?
    var url: URL?
    var allowsAccessRequests = false
    var requesters: [AccessRequester] = []
    var blockedIdentities: [BlockedIdentity] = []
    /// Whether a save says who may ask, and what became of those who did: other services than
    /// Watershed's don't know the words.
    var opensRequests = false
    var answersRequests = false
    /// Whether permissions or participants were changed since the share was fetched.
    var isChanged = true
  }

  private let sharing: Mutex<Sharing>

  // MARK: Making shares

  /// Creates a share of a record and of what hangs below it.
  ///
  /// Stops the process where the root is in the default zone, whose records can't be shared.
  public convenience init(rootRecord: CKRecord) {
    let name = "Share-" + CKRecord.ID.newRecordName()
    self.init(
      rootRecord: rootRecord,
      shareID: CKRecord.ID(recordName: name, zoneID: rootRecord.recordID.zoneID)
    )
  }

  /// Creates a share of a record and of what hangs below it, with a name.
  public init(rootRecord: CKRecord, shareID: CKRecord.ID) {
    precondition(
      rootRecord.recordID.zoneID.zoneName != CKRecordZone.ID.defaultZoneName,
      "Records of the default zone can't be shared: save the root record in a custom zone"
    )
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

  /// The owner of a share that is not saved yet: whoever saves it.
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

  // MARK: Who takes part

  /// What whoever has the link may do.
  ///
  /// Saving a share that everybody may open lets go of those who were invited and have not
  /// accepted; saving one that nobody may open lets go of those who came by the link.
  public var publicPermission: CKShare.ParticipantPermission {
    get { sharing.withLock { $0.publicPermission } }
    set { changeSharing { $0.publicPermission = newValue } }
  }

  /// Those who take part, the owner first.
  public var participants: [CKShare.Participant] { sharing.withLock { $0.participants } }

  /// The one whose records they are.
  public var owner: CKShare.Participant {
    let participants = self.participants
    return participants.first { $0.role == .owner } ?? participants.first ?? Self.newOwner()
  }

  /// The person who is signed in, where they take part.
  public var currentUserParticipant: CKShare.Participant? {
    sharing.withLock { sharing in
      // The owner of a share that was never saved is whoever saves it.
      guard let name = sharing.currentUserID else {
        return sharing.participants.first { $0.isCurrentUser }
      }
      return sharing.participants.first { $0.participantID == name }
    }
  }

  /// The address that people open, once the share is saved.
  public var url: URL? { sharing.withLock { $0.url } }

  /// Adds a participant; one who is there already is replaced.
  public func addParticipant(_ participant: CKShare.Participant) {
    changeSharing { sharing in
      if let index = sharing.participants.firstIndex(where: { $0.isSamePerson(participant) }) {
        // The owner stays the owner.
        guard sharing.participants[index].role != .owner else { return }
        sharing.participants[index] = participant
      } else {
        sharing.participants.append(participant)
      }
    }
  }

  /// Removes a participant; the owner stays.
  public func removeParticipant(_ participant: CKShare.Participant) {
    changeSharing { sharing in
      sharing.participants.removeAll {
        $0.role != .owner && $0.participantID == participant.participantID
      }
    }
  }

  // MARK: Requests to take part

  /// Whether people who have the link may ask to take part; at first they may not.
  ///
  /// Asking works where only those who are invited may open the share. Whoever asks is not told
  /// whether there is a share, or whether it hears them. Stops the process where the person who is
  /// signed in is neither the owner nor an administrator.
  public var allowsAccessRequests: Bool {
    get { sharing.withLock { $0.allowsAccessRequests } }
    set {
      changeRequests { sharing in
        sharing.allowsAccessRequests = newValue
        sharing.opensRequests = true
      }
    }
  }

  /// Those who asked to take part, as the owner and administrators see them.
  ///
  /// To let one in, fetch a participant for the `participantLookupInfo`, add it and save the share.
  public var requesters: [CKShare.AccessRequester] { sharing.withLock { $0.requesters } }

  /// Those who may not ask again.
  public var blockedIdentities: [CKShare.BlockedIdentity] {
    sharing.withLock { $0.blockedIdentities }
  }

  /// Refuses those who asked to take part, once the share is saved; they may ask again.
  ///
  /// Stops the process where the person who is signed in is neither the owner nor an administrator.
  public func denyRequesters(_ requesters: [CKShare.AccessRequester]) {
    changeRequests { sharing in
      sharing.requesters.removeAll { requesters.contains($0) }
      sharing.answersRequests = true
    }
  }

  /// Refuses people for good, once the share is saved: they can't ask again, and those who take part
  /// are removed.
  ///
  /// Stops the process where the person who is signed in is neither the owner nor an administrator.
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

  /// Lets those ask again who were refused for good, once the share is saved.
  ///
  /// Stops the process where the person who is signed in is neither the owner nor an administrator.
  public func unblockIdentities(_ blockedIdentities: [CKShare.BlockedIdentity]) {
    changeRequests { sharing in
      sharing.blockedIdentities.removeAll { blockedIdentities.contains($0) }
      sharing.answersRequests = true
    }
  }

  /// The address for one participant who is not known yet, or nothing.
  ///
  /// **Differs from CloudKit:** there is one only where the service makes such addresses.
  public func oneTimeURL(for participantID: CKShare.Participant.ID) -> URL? {
    guard let url,
      participants.contains(where: { $0.participantID == participantID && $0.isOneTime })
    else { return nil }
    var components = URLComponents(url: url, resolvingAgainstBaseURL: false)
    components?.queryItems = [URLQueryItem(name: "participant", value: participantID)]
    return components?.url
  }

  // MARK: The engine's side

  var sharingState: Sharing { sharing.withLock { $0 } }

  private func changeSharing(_ change: (inout Sharing) -> Void) {
    sharing.withLock { sharing in
      change(&sharing)
      sharing.isChanged = true
    }
  }

  private func changeRequests(_ change: (inout Sharing) -> Void) {
    let role = currentUserParticipant?.role ?? .owner
    precondition(
      role == .owner || role == .administrator,
      "Only the owner or an administrator of a share answers requests to take part in it"
    )
    changeSharing(change)
  }

  /// Takes over what the service says after a save.
  func adopt(_ saved: Sharing) {
    sharing.withLock { sharing in
      var saved = saved
      if saved.participants.isEmpty { saved.participants = sharing.participants }
      saved.url = saved.url ?? sharing.url
      saved.isChanged = false
      sharing = saved
    }
  }

  // MARK: Archives

  /// A share of its own with the same contents and the same changed keys.
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

  /// Reads a share from an archive made whole or of its system fields only.
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
    sharing.isChanged = coder.integer(forKey: "SharingChanged") != 0
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

  /// Writes what the service knows about the share, without its fields, to an archive.
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
    coder.encode(sharing.isChanged ? 1 : 0, forKey: "SharingChanged")
  }
}

extension CKShare.Participant {
  /// Whether it stands for whoever saves the share.
  var isCurrentUser: Bool {
    userIdentity.userRecordID?.recordName == CKCurrentUserDefaultName
  }

  /// The same participant, who has accepted.
  func accepted() -> CKShare.Participant {
    CKShare.Participant(participantID: participantID, state: stateAccepted())
  }

  /// Whether two participants are the same person, also where one was looked up again.
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
