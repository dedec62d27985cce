/// Checks a user's data at the end of a calm.
extension Oracle {
  /// Checks the state on which all devices of a user and the server agree.
  ///
  /// `recovered` contains the values in the recovery lists of the user's devices.
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

  /// Checks that an existing object has no deletion in force.
  private func auditLife(_ key: String, _ person: Int) {
    let hasLostZone = personsWithDeletedZone.contains(person)
    let standing = (deletions[key] ?? []).filter { deletion in
      guard !deletion.isVoid, deletion.mayBeUndone else { return !deletion.isVoid }
      // The backup contains the deletion if another device had applied it before the backup.
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

  /// Checks that an attribute has the value of a write that no later write has superseded.
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
    // A deletion discards the values that its device had seen, even if the object may be restored.
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

  /// Checks that a missing object was deleted by a user or by a delete rule.
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

  /// Checks that a missing object's last write is in a recovery list if no deletion of the object
  /// had seen it; of concurrent last writes, one.
  private func auditLastWrites(
    of key: String,
    _ entity: AppEntity,
    unless seen: Set<Int> = [],
    _ recovered: Set<String>
  ) {
    // The values of `data` are files, and the recovery list is searched for text.
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

  /// Checks that an object that was deleted by cascade is in a recovery list if no device knew that
  /// it belonged to the deleted owner.
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

  /// The objects whose deletion cascades to this object: its folders, or the items that it
  /// illustrated.
  private func owners(of key: String) -> [String] {
    let folders = (links[Slot(key: key, property: "folder")] ?? []).compactMap(\.destination)
    let items = (links[Slot(key: key, property: "item")] ?? []).compactMap(\.destination)
    return folders + items
  }

  /// Whether a deleted object may have been restored, without its members, because its deletion was
  /// lost with the server's data.
  private func mayHaveComeBack(_ key: String) -> Bool {
    deletions[key]?.contains(where: \.mayBeUndone) ?? false
  }

  /// Whether the deletion of an owner may have cascaded to an object.
  ///
  /// It may not if the object had left the owner before, and only the deleting device ever linked
  /// the two: every device then reads the object's new link before the deletion.
  private func mayTakeAlong(_ owner: String, _ key: String) -> Bool {
    let asked = deletions[owner] ?? []
    // The owner itself was deleted by cascade, or was never sent.
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

  /// Checks that a link that only one device has ever set has the last destination that the device
  /// set.
  private func auditLink(_ slot: Slot, _ destination: String?, _ state: AppState) {
    let own = links[slot] ?? []
    // A restored object has the links that it had on the device that restored it.
    guard deletions[slot.key] == nil, serverLostSince == nil,
      births[slot.key].map({ !personsWithDeletedZone.contains($0.person) }) ?? false
    else { return }
    guard let last = own.last, Set(own.map(\.device)).count == 1, !own.contains(where: \.isVoid)
    else { return }
    let expected = last.destination.flatMap { state.objects[$0] == nil ? nil : $0 }
    // If the destination was deleted on another device and restored, the link is not restored.
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
      // If the server lost a removal, a device that had not read it adds the label again, as with
      // deletions.
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
