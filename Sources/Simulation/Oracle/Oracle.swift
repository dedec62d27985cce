/// Computes the allowed states of a simulated world from a log of the apps' saves, and checks
/// devices and server against them.
///
/// The oracle uses no code of the product. It reads what an app saves and what a user would see in
/// each store, and none of the mirroring's metadata. Each value names the write that made it. For
/// each device the oracle keeps the set of writes that the device has seen: a vector clock as an
/// explicit set. A write supersedes every write that its device had seen, directly or through
/// superseded writes.
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
    /// The number of batches that the device had started to send.
    var batches = 0
    /// A newer version of the app, which the user had used before, has another name for the
    /// property.
    var hasFormerName = false
    /// The device was later replaced with a copy that may lack this write.
    var isVoid = false

    /// Whether an older value may replace this one.
    ///
    /// The newer version writes only the field of the present name. The older version writes the
    /// field of the former name into the same record. A device that reads both fields for the first
    /// time uses the present one.
    var mayLose: Bool { isVoid || hasFormerName }
  }

  struct Deletion {
    var device: Int
    var step: Int
    /// The writes of the object that the deleting device had seen.
    var seen: Set<Int>
    /// The number of batches that the device had started to send.
    var batches = 0
    /// The device may have sent the deletion before the server lost data; then only the lost data
    /// contained it.
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
  /// Writes whose device lost the object before it started another batch, so that no other device
  /// and no server has them.
  private(set) var lostUnsent: Set<Int> = []
  /// The step of the last erasure of each device.
  private(set) var erasures: [Int: Int] = [:]
  /// The writes and objects that the server's last backup certainly contains.
  var backedUp = Held()
  /// The writes and objects that the server still had after the last restoration or deletion of a
  /// zone, by user.
  var served: [Int: Held] = [:]
  /// The step from which on deletions may have been lost with the server's data; nil if the server
  /// lost none.
  var serverLostSince: Int?
  /// The step at which the first device lacked an object that another device had deleted, by
  /// object.
  var firstSeenGone: [String: Int] = [:]
  /// Users whose zone was deleted: pending deletions of the zone's objects have no effect any more.
  var personsWithDeletedZone: Set<Int> = []
  /// The values in recovery lists that their devices have lost since, by user.
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

  // MARK: Saves of the apps

  /// One committed change of a save.
  enum Entry {
    case born(key: String, AppEntity)
    case wrote(Slot, value: String)
    case linked(Slot, destination: String?)
    case deleted(key: String)
  }

  /// Records a successful save.
  ///
  /// - Parameters:
  ///   - entries: The committed changes.
  ///   - device: The index of the device.
  ///   - batches: The number of batches that the device had started to send.
  ///   - hasFormerModel: Whether the device runs an older version of the app after a newer one.
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

  // MARK: Visible states of the devices

  /// Compares a device's visible state with its previous one.
  ///
  /// - Parameters:
  ///   - state: The objects and values in the device's store.
  ///   - device: The index of the device.
  ///   - batches: The number of batches that the device has started to send.
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
    // After a server lost data, an older value may replace a newer one; the audit requires the
    // newer one in a recovery list.
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

  /// Whether the server has lost data of the device's user, by a restored backup or a deleted zone.
  private func mayHaveLostData(_ device: Int) -> Bool {
    serverLostSince != nil || personsWithDeletedZone.contains(personOf[device])
  }

  // MARK: Devices that lose data

  /// The writes that the device has seen, to be kept with a backup of the device.
  func knowledge(of device: Int) -> Knowledge {
    var known = knowledge[device] ?? Knowledge()
    known.step = step
    return known
  }

  /// Records that the device was replaced with a copy made at the time of `known`: its writes since
  /// then may be lost.
  func restored(_ device: Int, to known: Knowledge) {
    void(device, since: known.step)
    knowledge[device] = known
    for (number, write) in writes.enumerated() where write.device == device {
      lostUnsent.remove(number)
    }
  }

  /// Records that the app was deleted from the device with its data.
  func erased(_ device: Int, hadUnsentChanges: Bool) {
    erasures[device] = step
    // The device kept its deletions for devices that have not read since the loss; that list is
    // erased too.
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

  /// Marks link writes as void if no device or server has them.
  func voidLinks(where isGone: (Slot, LinkWrite) -> Bool) {
    for (slot, all) in links {
      for (number, link) in all.enumerated() where isGone(slot, link) {
        links[slot]?[number].isVoid = true
      }
    }
  }
}
