import CloudKitWebServices
import Effects
import Foundation
import Synchronization

extension CKShare {
  /// A participant of a share.
  public typealias Participant = CKShareParticipant

  /// The role of a participant.
  public enum ParticipantRole: Int, Sendable {
    /// A role that this version does not know.
    case unknown = 0
    /// The owner of the shared records.
    case owner = 1
    /// A participant who may invite others.
    case administrator = 2
    /// A participant who was invited.
    case privateUser = 3
    /// A participant who joined by the link.
    case publicUser = 4
  }

  /// The role of a participant, by an older name.
  @available(*, deprecated, renamed: "ParticipantRole")
  public enum ParticipantType: Int, Sendable {
    /// A role that this version does not know.
    case unknown = 0
    /// The owner of the shared records.
    case owner = 1
    /// A participant who was invited.
    case privateUser = 3
    /// A participant who joined by the link.
    case publicUser = 4
  }

  /// The permission of a participant.
  public enum ParticipantPermission: Int, Sendable {
    /// A permission that this version does not know.
    case unknown = 0
    /// No access.
    case none = 1
    /// Read access.
    case readOnly = 2
    /// Read and write access.
    case readWrite = 3
  }

  /// The status of an invitation.
  public enum ParticipantAcceptanceStatus: Int, Sendable {
    /// A status that this version does not know.
    case unknown = 0
    /// It was not accepted yet.
    case pending = 1
    /// It was accepted.
    case accepted = 2
    /// The participant was removed, or left.
    case removed = 3
  }
}

// Not nested, for the archives' sake: see `CKRecordID`.

/// A participant of a share.
///
/// ```swift
/// let participant = try await container.shareParticipant(forUserRecordID: userRecordID)
/// participant.permission = .readWrite
/// share.addParticipant(participant)
/// try await container.privateCloudDatabase.save(share)
/// ```
public final class CKShareParticipant: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
  // Unchecked: all mutable state is inside `state`.

  /// The identifier of a participant.
  public typealias ID = String
  /// The status of an invitation, by an older name.
  @available(*, deprecated, renamed: "CKShare.ParticipantAcceptanceStatus")
  public typealias AcceptanceStatus = CKShare.ParticipantAcceptanceStatus
  /// The permission of a participant, by an older name.
  @available(*, deprecated, renamed: "CKShare.ParticipantPermission")
  public typealias Permission = CKShare.ParticipantPermission
  /// The role of a participant, by an older name.
  @available(*, deprecated, renamed: "CKShare.ParticipantRole")
  public typealias Role = CKShare.ParticipantRole
  /// The role of a participant, by an older name.
  @available(*, deprecated, renamed: "CKShare.ParticipantRole")
  public typealias ParticipantType = CKShare.ParticipantType

  struct State: Sendable {
    var identity: CKUserIdentity
    var role = CKShare.ParticipantRole.privateUser
    var permission = CKShare.ParticipantPermission.readOnly
    var acceptanceStatus = CKShare.ParticipantAcceptanceStatus.pending
    var dateAddedToShare: Date?
    var isApprovedRequester = false
    /// Whether the first user who opens the one-time link becomes this participant.
    var isOneTime = false
  }

  /// The participant's identifier, the same in every copy of the share.
  public let participantID: CKShare.Participant.ID
  private let state: Mutex<State>

  init(participantID: ID, state: State) {
    self.participantID = participantID
    self.state = Mutex(state)
    super.init()
  }

  /// Creates a participant of a share that is not saved yet.
  convenience init(identity: CKUserIdentity, participantID: ID) {
    self.init(participantID: participantID, state: State(identity: identity))
  }

  /// A participant without an identity yet: the first user who opens the one-time link.
  ///
  /// **Differs from CloudKit:** one-time links need a service that issues them; see
  /// `CKShare.oneTimeURL(for:)`.
  public class func oneTimeURLParticipant() -> CKShare.Participant {
    var state = State(identity: CKUserIdentity(lookupInfo: nil))
    state.isOneTime = true
    return CKShare.Participant(
      participantID: ProcessEffects.current.uuid().uuidString,
      state: state
    )
  }

  /// The participant's identity.
  public var userIdentity: CKUserIdentity { state.withLock { $0.identity } }
  /// The status of the invitation.
  public var acceptanceStatus: CKShare.ParticipantAcceptanceStatus {
    state.withLock { $0.acceptanceStatus }
  }
  /// When the participant was added, if the service sends it.
  public var dateAddedToShare: Date? { state.withLock { $0.dateAddedToShare } }
  /// Whether the participant requested access and was approved.
  public var isApprovedRequester: Bool { state.withLock { $0.isApprovedRequester } }

  /// The participant's role.
  public var role: CKShare.ParticipantRole {
    get { state.withLock { $0.role } }
    set { state.withLock { $0.role = newValue } }
  }

  /// The participant's role, by an older name.
  @available(*, deprecated, renamed: "role")
  public var type: CKShare.ParticipantType {
    get { CKShare.ParticipantType(rawValue: role.rawValue) ?? .unknown }
    set { role = CKShare.ParticipantRole(rawValue: newValue.rawValue) ?? .unknown }
  }

  /// The participant's permission.
  public var permission: CKShare.ParticipantPermission {
    get { state.withLock { $0.permission } }
    set { state.withLock { $0.permission = newValue } }
  }

  /// Whether the first user who opens the one-time link becomes this participant.
  var isOneTime: Bool { state.withLock { $0.isOneTime } }

  /// The state of a participant who has accepted.
  func stateAccepted() -> State {
    var state = self.state.withLock { $0 }
    state.acceptanceStatus = .accepted
    return state
  }

  // MARK: The wire

  convenience init(wire: ShareParticipant) {
    var state = State(identity: CKUserIdentity(wire: wire.userIdentity ?? UserIdentity()))
    state.role = CKShare.ParticipantRole(wire.type)
    state.permission = CKShare.ParticipantPermission(wire.permission)
    state.acceptanceStatus = CKShare.ParticipantAcceptanceStatus(wire.acceptanceStatus)
    state.isApprovedRequester = wire.isApprovedRequester == true
    let fallback = wire.userIdentity?.userRecordName ?? ""
    self.init(participantID: wire.participantId ?? fallback, state: state)
  }

  var wire: ShareParticipant {
    let state = self.state.withLock { $0 }
    return ShareParticipant(
      participantId: participantID,
      type: state.role.wire,
      acceptanceStatus: state.acceptanceStatus.wire,
      permission: state.permission.wire,
      userIdentity: state.identity.wire
    )
  }

  // MARK: Archives

  /// Whether archives of this class are read securely.
  public static var supportsSecureCoding: Bool { true }

  /// Reads a participant from an archive.
  public convenience init?(coder: NSCoder) {
    guard let participantID = coder.decodeString(forKey: "ParticipantID"),
      let identity = coder.decodeIfPresent(of: CKUserIdentity.self, forKey: "UserIdentity")
    else { return nil }
    var state = State(identity: identity)
    state.role = CKShare.ParticipantRole(rawValue: coder.integer(forKey: "Role")) ?? .unknown
    state.permission =
      CKShare.ParticipantPermission(rawValue: coder.integer(forKey: "Permission")) ?? .unknown
    state.acceptanceStatus =
      CKShare.ParticipantAcceptanceStatus(rawValue: coder.integer(forKey: "AcceptanceStatus"))
      ?? .unknown
    state.dateAddedToShare = coder.decodeDate(forKey: "DateAddedToShare")
    state.isApprovedRequester = coder.integer(forKey: "IsApprovedRequester") != 0
    state.isOneTime = coder.integer(forKey: "IsOneTime") != 0
    self.init(participantID: participantID, state: state)
  }

  /// Writes the participant to an archive.
  public func encode(with coder: NSCoder) {
    let state = self.state.withLock { $0 }
    coder.encode(participantID as NSString, forKey: "ParticipantID")
    coder.encode(state.identity, forKey: "UserIdentity")
    coder.encode(state.role.rawValue, forKey: "Role")
    coder.encode(state.permission.rawValue, forKey: "Permission")
    coder.encode(state.acceptanceStatus.rawValue, forKey: "AcceptanceStatus")
    coder.encodeIfPresent(state.dateAddedToShare as NSDate?, forKey: "DateAddedToShare")
    coder.encode(state.isApprovedRequester ? 1 : 0, forKey: "IsApprovedRequester")
    coder.encode(state.isOneTime ? 1 : 0, forKey: "IsOneTime")
  }

  /// A copy of the participant with the same contents.
  public func copy(with zone: NSZone? = nil) -> Any {
    CKShare.Participant(participantID: participantID, state: state.withLock { $0 })
  }

  /// Whether the other object is the same participant.
  public override func isEqual(_ object: Any?) -> Bool {
    (object as? CKShare.Participant)?.participantID == participantID
  }

  /// A hash of the identifier.
  public override var hash: Int { participantID.hashValue }

  /// The form CloudKit prints.
  public override var description: String {
    "<CKShareParticipant: \(RecordFormatter.address(of: self)); participantID=\(participantID), "
      + "role=\(role), permission=\(permission), acceptanceStatus=\(acceptanceStatus)>"
  }
}

// MARK: - Names on the wire

extension CKShare.ParticipantRole {
  init(_ wire: ParticipantType?) {
    switch wire {
    case .owner: self = .owner
    case .administrator: self = .administrator
    case .user, nil: self = .privateUser
    case .publicUser: self = .publicUser
    case .unknown: self = .unknown
    }
  }

  var wire: ParticipantType {
    switch self {
    case .unknown: .unknown
    case .owner: .owner
    case .administrator: .administrator
    case .privateUser: .user
    case .publicUser: .publicUser
    }
  }
}

extension CKShare.ParticipantPermission {
  init(_ wire: ParticipantPermission?) {
    switch wire {
    case .none?: self = .none
    case .readOnly: self = .readOnly
    case .readWrite: self = .readWrite
    case .unknown, nil: self = .unknown
    }
  }

  var wire: ParticipantPermission {
    switch self {
    case .unknown: .unknown
    case .none: ParticipantPermission.none
    case .readOnly: .readOnly
    case .readWrite: .readWrite
    }
  }
}

extension CKShare.ParticipantAcceptanceStatus {
  init(_ wire: ParticipantStatus?) {
    switch wire {
    case .invited, nil: self = .pending
    case .accepted: self = .accepted
    case .removed, .unsubscribed: self = .removed
    case .unknown: self = .unknown
    }
  }

  var wire: ParticipantStatus {
    switch self {
    case .unknown: .unknown
    case .pending: .invited
    case .accepted: .accepted
    case .removed: .removed
    }
  }
}
