/// Invariants of a share's state in every commit.
extension ShareState {
  /// The broken invariants, a sentence each.
  func brokenInvariants() -> [String] {
    var broken: [String] = []
    if participants.first?.type != .owner {
      broken.append("the first participant of a share is not its owner")
    }
    if participants.count(where: { $0.type == .owner }) > 1 {
      broken.append("a share has several owners")
    }
    if Set(participants.map(\.id)).count != participants.count {
      broken.append("two participants of a share have one ID")
    }
    for participation in participations {
      if let left = participation.left, left < participation.joined {
        broken.append("a participation ended before it began")
      }
      if participation.left == nil, participant(named: participation.user) == nil {
        broken.append("a participation is open whose user is no participant")
      }
    }
    let open = participations.filter { $0.left == nil }.map(\.user)
    if Set(open).count != open.count { broken.append("a user has two open participations") }
    return broken
  }
}
