/// Tracks data that a restored server or a deleted zone lost.
extension Oracle {
  /// The writes and objects that one device, server or backup contains.
  struct Held {
    var writes: Set<Int> = []
    var objects: Set<String> = []

    /// Adds the writes that a device has seen and the objects that it shows.
    mutating func add(_ known: Knowledge) {
      for numbers in known.seen.values { writes.formUnion(numbers) }
      objects.formUnion(known.visible.keys.map(\.key))
    }
  }

  /// Records that the server was backed up.
  ///
  /// A write that a device other than its author shows came from the server, so the backup contains
  /// it. A write that only its author shows may be missing: its batch may not have arrived.
  func noteServerBackup() {
    backedUp = Held()
    for (device, known) in knowledge {
      for numbers in known.seen.values {
        backedUp.writes.formUnion(numbers.filter { writes[$0].device != device })
      }
      backedUp.objects.formUnion(
        known.visible.keys.map(\.key).filter { births[$0].map { $0.device != device } ?? false }
      )
    }
  }

  /// Records that the server was restored from its last backup.
  ///
  /// - Parameters:
  ///   - persons: The users whose data was restored.
  ///   - begun: The number of batches that each device has started to send.
  func serverRestored(persons: Set<Int>, begun: [Int: Int]) {
    for person in persons.sorted() {
      excuseDeletions(of: person, begun: begun)
      lost(person, keeping: backedUp)
    }
  }

  /// Records that a user's zone was deleted; `begun` is the number of batches that each device has
  /// started to send.
  func zoneDeleted(person: Int, begun: [Int: Int]) {
    personsWithDeletedZone.insert(person)
    excuseDeletions(of: person, begun: begun)
    lost(person, keeping: Held())
  }

  /// Marks deletions that may be undone, because devices that have not read them find no trace on
  /// the server.
  ///
  /// A deletion is excluded if its device has started no batch since: it was not sent, so it must
  /// still reach the server.
  private func excuseDeletions(of person: Int, begun: [Int: Int]) {
    excuseDeletions { deletion in
      personOf[deletion.device] == person && begun[deletion.device] ?? .max > deletion.batches
    }
  }

  func excuseDeletions(ofDevice device: Int) { excuseDeletions { $0.device == device } }

  private func excuseDeletions(where isMeant: (Deletion) -> Bool) {
    for (key, all) in deletions {
      for (number, deletion) in all.enumerated() where isMeant(deletion) {
        deletions[key]?[number].mayBeUndone = true
      }
    }
  }

  /// Records that the server lost all data of a user except `held`.
  ///
  /// A write that neither `held` nor any device has is lost, at whichever step it was made.
  ///
  /// The step of a write does not say whether a backup has it: its batch may have reached the
  /// server later than the backup was made, and its device may have been erased since with nothing
  /// left to send.
  private func lost(_ person: Int, keeping held: Held) {
    served[person] = held
    var present = held
    for (device, known) in knowledge where personOf[device] == person { present.add(known) }
    void(person, except: present)
    voidLinks { slot, link in
      // The oracle does not know which devices have a link; its author has it until it is erased.
      births[slot.key]?.person == person && erasures[link.device].map { $0 > link.step } ?? false
    }
  }

  /// Records that a device loses its data while it still has writes that the server lost.
  ///
  /// Writes that no other device and no `copy` of this device has are lost.
  func lostWithServer(_ device: Int, keeping copy: Knowledge = Knowledge()) {
    let person = personOf[device]
    guard var present = served[person], let own = knowledge[device] else { return }
    var had = Held()
    had.add(own)
    present.add(copy)
    for (other, known) in knowledge where other != device && personOf[other] == person {
      present.add(known)
    }
    void(person, among: had, except: present)
    voidLinks { slot, _ in births[slot.key]?.person == person }
  }

  /// Marks as void every write and object that `present` does not contain; `had` restricts this to
  /// the data of one device.
  private func void(_ person: Int, among had: Held? = nil, except present: Held) {
    for number in writes.indices
    where personOf[writes[number].device] == person && !present.writes.contains(number)
      && had?.writes.contains(number) ?? true
    {
      writes[number].isVoid = true
    }
    for (key, birth) in births
    where birth.person == person && !present.objects.contains(key)
      && had?.objects.contains(key) ?? true
    {
      births[key]?.isVoid = true
    }
  }
}
