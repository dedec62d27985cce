import CloudKitWebServices

/// What a participant sees of somebody's zone, now and in the times they took part before.
struct ZoneView: Hashable, Sendable {
  /// A time in one share.
  struct Stay: Hashable, Sendable {
    var share: String
    var joined: ChangeNumber
    var left: ChangeNumber?
  }

  /// What may be done in each share, now; empty where the zone is closed to them.
  private(set) var permissions: [String: ParticipantPermission] = [:]
  private(set) var stays: [Stay] = []
  /// The zone is shared as a whole.
  private(set) var isWhole = false

  /// Reads the shares that the person has links to, ended ones among them.
  init(of shares: [StoredRecord], for user: String) throws {
    for record in shares {
      guard let state = try record.decodedSharing()?.state else { continue }
      let name = record.key.name
      if PublicVisit.isReader(user) {
        visit(name, state, isEnded: record.isDeleted)
        continue
      }
      stays += state.stays.filter { $0.user == user }.map {
        Stay(share: name, joined: $0.joined, left: $0.left)
      }
      guard !record.isDeleted else { continue }
      let permission = state.permission(of: user)
      guard permission.canRead, stays.contains(where: { $0.share == name && $0.left == nil })
      else { continue }
      permissions[name] = permission
      if state.root == nil { isWhole = true }
    }
    stays.sort { ($0.joined, $0.share) < ($1.joined, $1.share) }
  }

  /// Nobody's stay: it begins before everything and ends with what the link gives.
  private mutating func visit(_ share: String, _ state: ShareState, isEnded: Bool) {
    guard !isEnded, state.publicPermission.canRead else { return }
    stays.append(Stay(share: share, joined: .zero, left: nil))
    permissions[share] = .readOnly
    if state.root == nil { isWhole = true }
  }

  var isOpen: Bool { !permissions.isEmpty }

  /// What may be done with a record; `none` where it is not seen.
  func permission(for record: StoredRecord) -> ParticipantPermission {
    if isWhole { return permissions[ShareDictionary.zoneShareName] ?? .none }
    return record.membership.flatMap { permissions[$0.share] } ?? .none
  }

  func permission(inShare share: String?) -> ParticipantPermission {
    if isWhole { return permissions[ShareDictionary.zoneShareName] ?? .none }
    return share.flatMap { permissions[$0] } ?? .none
  }

  func sees(_ record: StoredRecord) -> Bool { permission(for: record).canRead }

  /// When the present stay in the zone as a whole began; tokens of another one have expired.
  var wholeSince: ChangeNumber? {
    isWhole ? stays.last { $0.left == nil }?.joined : nil
  }
}
