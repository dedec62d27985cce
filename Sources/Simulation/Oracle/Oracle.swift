/// Knows what must be true of a world, from its own log of what the apps did.
///
/// It stands outside the product: it sees what an app saves and what a person would see in each store, and
/// nothing of the mirroring's metadata. Each value names the write that made it. For each device the oracle
/// keeps the set of writes that the device has seen, its vector clock written out; a write supersedes those,
/// and those that they superseded.
final class Oracle {
  /// A property of an object.
  struct Slot: Hashable {
    var key: String
    var property: String
  }

  struct Write {
    var slot: Slot
    var value: String
    var device: Int
    /// The writes that happened before this one.
    var ancestors: Set<Int>
    var step: Int
    /// The batches that the device had begun to send.
    var batches = 0
    /// A newer version of the app, which was in use before, knows the property under another name.
    var hasFormerName = false
    /// The device was later replaced with a copy that may not have had this write.
    var isVoid = false

    /// Whether an older value may replace this one.
    ///
    /// A record of the newer version has the property's present field alone. The older version writes the former
    /// one beside it, and a device that reads both for the first time takes the present one.
    var mayLose: Bool { isVoid || hasFormerName }
  }

  struct Deletion {
    var device: Int
    var step: Int
    /// The writes of the object that the deleting device had seen.
    var seen: Set<Int>
    /// The batches that the device had begun to send.
    var batches = 0
    /// The device may have sent it before the server lost data, so that only what was lost knew of it.
    var mayBeUndone = false
    var isVoid = false
  }

  struct Birth {
    var entity: AppEntity
    var device: Int
    var person: Int
    var step: Int
    var isVoid = false
  }

  /// A change of a link: its destination, or nil.
  struct LinkWrite {
    var device: Int
    var step: Int
    var destination: String?
    var isVoid = false
  }

  /// The writes that a device has seen so far.
  struct Knowledge {
    var seen: [Slot: Set<Int>] = [:]
    var visible: [Slot: Int] = [:]
    var step = 0
  }

  var writes: [Write] = []
  private var index: [Slot: [String: Int]] = [:]
  var births: [String: Birth] = [:]
  var deletions: [String: [Deletion]] = [:]
  var links: [Slot: [LinkWrite]] = [:]
  private(set) var knowledge: [Int: Knowledge] = [:]
  let personOf: [Int]
  /// Writes of an object that their device lost before it began to send another batch, so that no other
  /// device and no server has them.
  private(set) var lostUnsent: Set<Int> = []
  /// The step of the last erasure of each device.
  private(set) var erasures: [Int: Int] = [:]
  /// The contents that the server's last backup has for certain.
  var backedUp = Held()
  /// The data that the server kept when it was last restored or a zone was deleted, by user.
  var served: [Int: Held] = [:]
  /// Deletions from this step on may have been lost with the server's data.
  var serverLostSince: Int?
  /// The step at which a device first showed that an object is gone that another device had deleted.
  var firstSeenGone: [String: Int] = [:]
  /// Persons whose zone was deleted: pending deletions of its objects have lost their meaning.
  var personsWithDeletedZone: Set<Int> = []
  /// The writes that were in recovery lists which their devices have lost since, by person.
  var lostLists: [Int: Set<String>] = [:]
  var step = 0
  private(set) var checks: [Guarantee: Int] = [:]
  private(set) var violations: [Violation] = []
  private let now: () -> Double

  init(personOf: [Int], now: @escaping () -> Double) {
    self.personOf = personOf
    self.now = now
  }

  // MARK: Verdicts

  func check(_ guarantee: Guarantee) { checks[guarantee, default: 0] += 1 }

  func report(_ guarantee: Guarantee, _ text: String) {
    let isKnown = violations.contains { $0.guarantee == guarantee && $0.text == text }
    guard !isKnown, violations.count < 50 else { return }
    violations.append(Violation(guarantee: guarantee, text: text, time: now()))
  }

  func expect(_ condition: Bool, _ guarantee: Guarantee, _ text: @autoclosure () -> String) {
    check(guarantee)
    if !condition { report(guarantee, text()) }
  }

  // MARK: What the apps do

  /// One durable effect of a save.
  enum Entry {
    case born(key: String, AppEntity)
    case wrote(Slot, value: String)
    case linked(Slot, destination: String?)
    case deleted(key: String)
  }

  /// Takes down a save that returned without an error, of a device that has begun to send so many batches;
  /// `hasFormerModel` says that its version of the app is older than one that has been in use, and that a device
  /// has gone back to it.
  func saved(
    _ entries: [Entry],
    on device: Int,
    batches: Int = 0,
    hasFormerModel: Bool = false
  ) {
    for entry in entries {
      switch entry {
      case .born(let key, let entity):
        births[key] = Birth(
          entity: entity,
          device: device,
          person: personOf[device],
          step: step
        )
      case .wrote(let slot, let value):
        let ancestors = knowledge[device]?.seen[slot] ?? []
        let number = writes.count
        writes.append(
          Write(
            slot: slot,
            value: value,
            device: device,
            ancestors: ancestors,
            step: step,
            batches: batches,
            hasFormerName: hasFormerModel && AppModel.isRenamed(slot.property)
          )
        )
        index[slot, default: [:]][value] = number
        knowledge[device, default: Knowledge()].seen[slot, default: []].insert(number)
        knowledge[device]?.visible[slot] = number
      case .linked(let slot, let destination):
        links[slot, default: []].append(
          LinkWrite(device: device, step: step, destination: destination)
        )
      case .deleted(let key):
        let seen = (knowledge[device]?.seen ?? [:]).filter { $0.key.key == key }
          .reduce(into: Set<Int>()) { $0.formUnion($1.value) }
        deletions[key, default: []].append(
          Deletion(device: device, step: step, seen: seen, batches: batches)
        )
      }
    }
  }

  // MARK: What the devices show

  /// Compares what a device, which has begun to send so many batches, shows with what it showed before.
  func observe(_ state: AppState, on device: Int, batches: Int = .max) {
    for defect in state.defects where !defect.mayPass {
      report(defect.guarantee, "device \(device): \(defect.text)")
    }
    check(.graphIntegrity)
    check(.nothingDoubled)
    var known = knowledge[device] ?? Knowledge()
    for (key, object) in state.objects.sorted(by: { $0.key < $1.key }) {
      guard let birth = births[key] else {
        report(.nothingInvented, "device \(device) has \(key), which no app made")
        continue
      }
      expect(
        birth.person == personOf[device],
        .isolation,
        "device \(device) of person \(personOf[device]) has \(key) of person \(birth.person)"
      )
      for property in AppModel.attributes(object.entity) {
        observe(Slot(key: key, property: property), object.values[property], device, &known)
      }
    }
    for slot in known.visible.keys where state.objects[slot.key] == nil {
      let isOwn = deletions[slot.key]?.contains { $0.device == device } ?? true
      if !isOwn, firstSeenGone[slot.key] == nil { firstSeenGone[slot.key] = step }
    }
    for (slot, number) in known.visible where state.objects[slot.key] == nil {
      let write = writes[number]
      if write.device == device, write.batches == batches { lostUnsent.insert(number) }
    }
    knowledge[device] = known
  }

  private func observe(
    _ slot: Slot,
    _ value: String?,
    _ device: Int,
    _ known: inout Knowledge
  ) {
    let name = "\(slot.key).\(slot.property)"
    guard let value else {
      if let before = known.visible[slot] {
        report(.nothingVanished, "device \(device): \(name) was \(writes[before].value), is empty")
      }
      return
    }
    guard let number = index[slot]?[value] else {
      return report(.nothingInvented, "device \(device): \(name) is \(value), which no app wrote")
    }
    // A server that lost data may put an older value first; the audit wants the newer one in a recovery list.
    if let before = known.visible[slot], before != number, !mayHaveLostData(device) {
      expect(
        !writes[before].ancestors.contains(number) || writes[before].mayLose,
        .nothingStale,
        "device \(device): \(name) was \(writes[before].value) and went back to \(value)"
      )
    }
    known.visible[slot] = number
    known.seen[slot, default: []].insert(number)
    known.seen[slot]?.formUnion(writes[number].ancestors)
  }

  /// Whether the server has lost data of the device's person, by a restored backup or a deleted zone.
  private func mayHaveLostData(_ device: Int) -> Bool {
    serverLostSince != nil || personsWithDeletedZone.contains(personOf[device])
  }

  // MARK: Devices that lose what they have

  /// The writes that the device has seen, for a backup of it.
  func knowledge(of device: Int) -> Knowledge {
    var known = knowledge[device] ?? Knowledge()
    known.step = step
    return known
  }

  /// The device was replaced with a copy of that time: what it did since may be lost with it.
  func restored(_ device: Int, to known: Knowledge) {
    void(device, since: known.step)
    knowledge[device] = known
    for (number, write) in writes.enumerated() where write.device == device {
      lostUnsent.remove(number)
    }
  }

  /// The app was deleted with its data.
  func erased(_ device: Int, hadUnsentChanges: Bool) {
    erasures[device] = step
    // What it remembers of deletions for devices that have not read since the loss is erased with it.
    if mayHaveLostData(device) { excuseDeletions(ofDevice: device) }
    if hadUnsentChanges { void(device, since: 0) }
    knowledge[device] = Knowledge()
  }

  private func void(_ device: Int, since first: Int) {
    for number in writes.indices
    where writes[number].device == device && writes[number].step >= first {
      writes[number].isVoid = true
    }
    for key in births.keys where births[key]?.device == device {
      if let birth = births[key], birth.step >= first { births[key]?.isVoid = true }
    }
    for (key, all) in deletions {
      deletions[key] = all.map { deletion in
        guard deletion.device == device, deletion.step >= first else { return deletion }
        var deletion = deletion
        deletion.isVoid = true
        return deletion
      }
    }
    voidLinks { _, link in link.device == device && link.step >= first }
  }

  /// Voids the writes of links that are gone, by their slots.
  func voidLinks(where isGone: (Slot, LinkWrite) -> Bool) {
    for (slot, all) in links {
      for (number, link) in all.enumerated() where isGone(slot, link) {
        links[slot]?[number].isVoid = true
      }
    }
  }
}
