/// Notes what is gone with the server's data.
extension Oracle {
  /// Writes and objects that are at some place.
  struct Held {
    var writes: Set<Int> = []
    var objects: Set<String> = []

    /// Adds what a device shows.
    mutating func add(_ known: Knowledge) {
      for numbers in known.seen.values { writes.formUnion(numbers) }
      objects.formUnion(known.visible.keys.map(\.key))
    }
  }

  /// The server was backed up.
  ///
  /// The backup has for certain what another device than the author's shows: it came from the server. What the
  /// author alone has may be in the backup, or its batch was still on its way.
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

  /// The server was restored from its last backup; `begun` are the batches that each device has begun to send.
  func serverRestored(persons: Set<Int>, begun: [Int: Int]) {
    for person in persons.sorted() {
      excuseDeletions(of: person, begun: begun)
      lost(person, keeping: backedUp)
    }
  }

  /// The zone of a person was deleted; `begun` are the batches that each device has begun to send.
  func zoneDeleted(person: Int, begun: [Int: Int]) {
    personsWithDeletedZone.insert(person)
    excuseDeletions(of: person, begun: begun)
    lost(person, keeping: Held())
  }

  /// Devices that have not read a deletion undo it if its only trace was lost with the server's data.
  ///
  /// One whose device has begun no batch since was not sent: it must be sent, or remembered, after the loss.
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

  /// The server lost all data of a person but what it holds: what no device has either is gone, whenever it was
  /// written.
  ///
  /// The step of a write does not say whether a backup has it: its batch may have reached the server later than
  /// the backup was made, and its device may have been erased since with nothing left to send.
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

  /// A device is about to lose what it has, and the server lost data that the device has not read since: what
  /// no other device has, nor a copy of this one, is gone.
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

  /// Voids what is nowhere any more; `had` limits that to what one device showed.
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
