/// Checks a user's data at the end of a calm.
extension Oracle {
  /// Judges the state that all devices of a person and the server agree on.
  ///
  /// `recovered` are the writes that the recovery lists of the person's devices hold.
  func audit(_ state: AppState, person: Int, recovered: Set<String>) {
    let recovered = recovered.union(lostLists[person] ?? [])
    for defect in state.defects { report(defect.guarantee, "person \(person): \(defect.text)") }
    for (key, birth) in births.sorted(by: { $0.key < $1.key }) where birth.person == person {
      if let object = state.objects[key] {
        auditLife(key, person)
        for property in AppModel.attributes(object.entity) {
          auditValue(Slot(key: key, property: property), object.values[property], recovered)
        }
        auditLink(Slot(key: key, property: "folder"), object.links["folder"], state)
      } else {
        auditDeath(key, birth, state, person, recovered)
      }
    }
    auditLabels(state, person)
  }

  /// An object that is there must not have been deleted.
  private func auditLife(_ key: String, _ person: Int) {
    let hasLostZone = personsWithDeletedZone.contains(person)
    let standing = (deletions[key] ?? []).filter { deletion in
      guard !deletion.isVoid, deletion.mayBeUndone else { return !deletion.isVoid }
      // The backup has the deletion where another device knew of it before.
      guard !hasLostZone, let lost = serverLostSince, let gone = firstSeenGone[key] else {
        return false
      }
      return gone < lost
    }
    expect(
      standing.isEmpty,
      .nothingResurrected,
      "\(key) was deleted on device \(standing.first?.device ?? 0) and is there"
    )
  }

  /// An attribute must hold a write that no later write has superseded.
  private func auditValue(_ slot: Slot, _ value: String?, _ recovered: Set<String>) {
    let own = writes.indices.filter { writes[$0].slot == slot }
    let name = "\(slot.key).\(slot.property)"
    guard let value else {
      let standing = own.filter { !writes[$0].isVoid }
      return expect(
        standing.isEmpty,
        .nothingVanished,
        "\(name) is empty, and \(standing.last.map { writes[$0].value } ?? "") was written"
      )
    }
    guard let number = own.first(where: { writes[$0].value == value }) else { return }
    check(.nothingVanished)
    let mayBeRecovered =
      serverLostSince != nil
      || (births[slot.key].map { personsWithDeletedZone.contains($0.person) } ?? false)
    // A deletion gives up the object's values, even if the object may be recovered.
    let givenUp =
      mayBeRecovered
      ? (deletions[slot.key] ?? []).reduce(into: Set<Int>()) { $0.formUnion($1.seen) } : []
    let later = own.filter { other in
      writes[other].ancestors.contains(number) && !writes[other].mayLose && !givenUp.contains(other)
    }
    expect(
      later.isEmpty || (mayBeRecovered && later.contains { recovered.contains(writes[$0].value) }),
      .nothingStale,
      "\(name) is \(value), although device \(later.last.map { writes[$0].device } ?? 0), which had "
        + "seen that, wrote \(later.last.map { writes[$0].value } ?? "")"
    )
  }

  /// An object that is gone must have been deleted, by a person or by a delete rule.
  private func auditDeath(
    _ key: String,
    _ birth: Birth,
    _ state: AppState,
    _ person: Int,
    _ recovered: Set<String>
  ) {
    guard !birth.isVoid else { return }
    let asked = deletions[key] ?? []
    guard !asked.isEmpty else {
      let owners = owners(of: key)
      expect(
        owners.contains { owner in
          (state.objects[owner] == nil || mayHaveComeBack(owner)) && mayTakeAlong(owner, key)
        },
        .noUnaskedDeletion,
        "\(key) of device \(birth.device) is gone, and no device deleted it or its owner"
      )
      return auditTakenAlong(key, birth.entity, person, recovered)
    }
    check(.noUnaskedDeletion)
    guard serverLostSince == nil, !personsWithDeletedZone.contains(person) else { return }
    let seen = asked.reduce(into: Set<Int>()) { $0.formUnion($1.seen) }
    auditLastWrites(of: key, birth.entity, unless: seen, recovered)
  }

  /// The last writes of an object that is gone, if none of its deletions had seen them, are in a recovery list:
  /// one of those that were made at once.
  private func auditLastWrites(
    of key: String,
    _ entity: AppEntity,
    unless seen: Set<Int> = [],
    _ recovered: Set<String>
  ) {
    // A file of its own is no text that the list is searched for.
    for property in AppModel.attributes(entity) where property != "data" {
      let slot = Slot(key: key, property: property)
      let own = writes.indices.filter { writes[$0].slot == slot && !writes[$0].isVoid }
      let latest = own.filter { number in
        !own.contains { writes[$0].ancestors.contains(number) }
      }
      guard !latest.isEmpty, latest.allSatisfy({ !seen.contains($0) }) else { continue }
      expect(
        latest.contains { recovered.contains(writes[$0].value) },
        .recovery,
        "\(key).\(property) = \(latest.map { writes[$0].value }) was overridden by a deletion that had "
          + "not seen it, and no recovery list has it"
      )
    }
  }

  /// An object that the deletion of an owner took along, and that no device knew to belong to it, is in a recovery
  /// list.
  private func auditTakenAlong(
    _ key: String,
    _ entity: AppEntity,
    _ person: Int,
    _ recovered: Set<String>
  ) {
    guard serverLostSince == nil, !personsWithDeletedZone.contains(person) else { return }
    auditLastWrites(of: key, entity, recovered)
    for number in lostUnsent.sorted() {
      let write = writes[number]
      guard write.slot.key == key, write.slot.property != "data", !write.isVoid else { continue }
      expect(
        recovered.contains(write.value),
        .recovery,
        "\(key).\(write.slot.property) = \(write.value), which device \(write.device) had not sent, went with "
          + "its owner, and no recovery list has it"
      )
    }
  }

  /// The objects whose deletion takes this one along: its folders, or the items that it illustrated.
  private func owners(of key: String) -> [String] {
    let folders = (links[Slot(key: key, property: "folder")] ?? []).compactMap(\.destination)
    let items = (links[Slot(key: key, property: "item")] ?? []).compactMap(\.destination)
    return folders + items
  }

  /// Whether an object was deleted and may have come back, without its members, as the deletion was lost with the
  /// server's data.
  private func mayHaveComeBack(_ key: String) -> Bool {
    deletions[key]?.contains(where: \.mayBeUndone) ?? false
  }

  /// Whether the deletion of an owner may have taken an object along.
  ///
  /// An owner that the object had left before may not, if the device that deleted the owner was the only one that
  /// ever put the object there: wherever the deletion arrives, the object's new link arrives before it.
  private func mayTakeAlong(_ owner: String, _ key: String) -> Bool {
    let asked = deletions[owner] ?? []
    // It went with an owner of its own, or was never sent.
    guard !asked.isEmpty else { return true }
    for property in ["folder", "item"] {
      let all = links[Slot(key: key, property: property)] ?? []
      let putThere = Set(all.filter { $0.destination == owner }.map(\.device))
      guard !putThere.isEmpty, !all.contains(where: \.isVoid) else { continue }
      let isLeft = asked.allSatisfy { deletion in
        putThere == [deletion.device]
          && all.last { $0.device == deletion.device && $0.step < deletion.step }?.destination
            != owner
          && !all.contains { $0.device == deletion.device && $0.step == deletion.step }
      }
      if isLeft { return false }
    }
    return true
  }

  /// A link that one device alone has ever set holds what that device set last.
  private func auditLink(_ slot: Slot, _ destination: String?, _ state: AppState) {
    let own = links[slot] ?? []
    // An object that came back has the links that it had elsewhere.
    guard deletions[slot.key] == nil, serverLostSince == nil,
      births[slot.key].map({ !personsWithDeletedZone.contains($0.person) }) ?? false
    else { return }
    guard let last = own.last, Set(own.map(\.device)).count == 1, !own.contains(where: \.isVoid)
    else { return }
    let expected = last.destination.flatMap { state.objects[$0] == nil ? nil : $0 }
    // Where the destination was deleted elsewhere and came back, the link does not.
    if destination == nil, let target = last.destination, deletions[target] != nil { return }
    expect(
      destination == expected,
      .nothingVanished,
      "\(slot.key).\(slot.property) is \(destination ?? "nothing"), and device \(last.device) set "
        + "\(last.destination ?? "nothing") last"
    )
  }

  private func auditLabels(_ state: AppState, _ person: Int) {
    for (slot, own) in links.sorted(by: {
      ($0.key.key, $0.key.property) < ($1.key.key, $1.key.property)
    })
    where slot.property.hasPrefix("label ") {
      let label = String(slot.property.dropFirst("label ".count))
      guard births[slot.key]?.person == person, let item = state.objects[slot.key],
        state.objects[label] != nil, deletions[slot.key] == nil, deletions[label] == nil
      else { continue }
      let isThere = item.labels.contains(label)
      let standing = own.filter { !$0.isVoid }
      if isThere {
        expect(
          own.contains { $0.destination != nil },
          .nothingInvented,
          "\(slot.key) has the label \(label) that no device gave it"
        )
      }
      guard let last = standing.last, standing.count == own.count else { continue }
      // A removal that the server lost is undone by a device that had not read it, as a deletion is.
      let mayBeUndone = serverLostSince != nil || personsWithDeletedZone.contains(person)
      if isThere, last.destination == nil, mayBeUndone { continue }
      let authors = Set(own.map(\.device))
      let wasNeverRemoved = !own.contains { $0.destination == nil }
      guard authors.count == 1 || wasNeverRemoved else { continue }
      expect(
        isThere == (last.destination != nil),
        .nothingVanished,
        "\(slot.key) \(isThere ? "has" : "lacks") the label \(label), against device \(last.device)"
      )
    }
  }
}
