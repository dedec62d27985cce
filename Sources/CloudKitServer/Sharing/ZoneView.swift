import CloudKitWebServices

/// The records of another owner's zone that a participant sees, in present and former
/// participations.
struct ZoneView: Hashable, Sendable {
  /// The interval of participation in one share.
  struct Participation: Hashable, Sendable {
    var share: String
    var joined: ChangeNumber
    var left: ChangeNumber?
  }

  /// The current permission in each share; empty if the participant has no access to the zone.
  private(set) var permissions: [String: ParticipantPermission] = [:]
  private(set) var participations: [Participation] = []
  /// Whether the zone is shared as a whole.
  private(set) var isWhole = false

  /// The contents of one share, which may name many people, for one reader.
  struct Part: Sendable {
    var share: String
    var participations: [Participation]
    /// Nil if the reader has no access now.
    var permission: ParticipantPermission?
    /// Whether the zone is shared as a whole.
    var isOfZone: Bool

    /// Nil for a record that is no share.
    init?(_ stored: StoredShare, for reader: ReaderID) throws {
      guard let state = try stored.decodedSharing()?.state else { return nil }
      let name = stored.key.name
      share = name
      isOfZone = state.root == nil
      switch reader {
      case .anonymous:
        participations = []
        permission = nil
      case .visitor:
        // A visitor's participation has no beginning, and ends when the share is no longer public.
        let isOpen = !stored.isDeleted && state.publicPermission.canRead
        participations = isOpen ? [Participation(share: name, joined: .zero, left: nil)] : []
        permission = isOpen ? .readOnly : nil
      case .user(let user):
        participations = state.participations.filter { $0.user == user }.map {
          Participation(share: name, joined: $0.joined, left: $0.left)
        }
        let current = state.permission(of: user)
        let isOpen =
          !stored.isDeleted && current.canRead && participations.contains { $0.left == nil }
        permission = isOpen ? current : nil
      }
    }
  }

  /// The shares to which the reader has links, including ended ones.
  init(of parts: [Part]) {
    for part in parts {
      participations += part.participations
      guard let permission = part.permission else { continue }
      permissions[part.share] = permission
      if part.isOfZone { isWhole = true }
    }
    participations.sort { ($0.joined, $0.share) < ($1.joined, $1.share) }
  }

  var isOpen: Bool { !permissions.isEmpty }

  /// The permission for a record; `none` if it is not visible.
  func permission(for record: StoredRecord) -> ParticipantPermission {
    if isWhole { return permissions[ShareDictionary.zoneShareName] ?? .none }
    return record.membership.flatMap { permissions[$0.share] } ?? .none
  }

  func permission(inShare share: String?) -> ParticipantPermission {
    if isWhole { return permissions[ShareDictionary.zoneShareName] ?? .none }
    return share.flatMap { permissions[$0] } ?? .none
  }

  func sees(_ record: StoredRecord) -> Bool { permission(for: record).canRead }

  /// When the present participation in the whole zone began; tokens of an earlier one have expired.
  var wholeSince: ChangeNumber? {
    isWhole ? participations.last { $0.left == nil }?.joined : nil
  }
}
