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

  /// Reads the shares to which the user has links, including ended ones.
  init(of shares: [StoredRecord], for user: String) throws {
    for record in shares {
      guard let state = try record.decodedSharing()?.state else { continue }
      let name = record.key.name
      if PublicVisit.isReader(user) {
        visit(name, state, isEnded: record.isDeleted)
        continue
      }
      participations += state.participations.filter { $0.user == user }.map {
        Participation(share: name, joined: $0.joined, left: $0.left)
      }
      guard !record.isDeleted else { continue }
      let permission = state.permission(of: user)
      guard permission.canRead,
        participations.contains(where: { $0.share == name && $0.left == nil })
      else { continue }
      permissions[name] = permission
      if state.root == nil { isWhole = true }
    }
    participations.sort { ($0.joined, $0.share) < ($1.joined, $1.share) }
  }

  /// Adds a visitor's participation: it has no beginning, and ends when the share is no longer
  /// public.
  private mutating func visit(_ share: String, _ state: ShareState, isEnded: Bool) {
    guard !isEnded, state.publicPermission.canRead else { return }
    participations.append(Participation(share: share, joined: .zero, left: nil))
    permissions[share] = .readOnly
    if state.root == nil { isWhole = true }
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
