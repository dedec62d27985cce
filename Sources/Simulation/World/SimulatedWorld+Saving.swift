import Foundation
import OpenCoreData

extension SimulatedWorld {
  /// The app changes objects in one of its contexts and saves.
  func save(_ device: SimulatedDevice, _ number: Int, _ changes: [AppChange]) {
    guard device.isRunning, let context = device.context(number) else { return }
    observe(device)
    var app = AppEditing(context: context, device: device)
    var failure: (any Error)?
    context.performAndWait {
      do {
        for change in changes { try app.make(change) }
        try app.noteDeletions()
        if context.hasChanges { try context.save() }
      } catch {
        failure = error
        context.rollback()
      }
    }
    if let failure {
      // A context that stays may hold an object that another device deleted meanwhile.
      note(device.name, "save refused: \((failure as NSError).code)")
      count("save refused")
      if number == 0 {
        oracle.report(.liveness, "\(device.name) cannot save: \(failure)")
      }
      return
    }
    guard !app.entries.isEmpty else { return }
    note(device.name, "saves " + app.lines.joined(separator: ", "))
    oracle.saved(
      app.entries,
      on: device.index,
      batches: device.link.batchCount,
      hasFormerModel: personsWithDowngrade.contains(device.person)
        && device.version < newestVersion(of: device.person)
    )
    observe(device)
  }
}

/// The edits of one save of the simulated app, and the entries that the oracle gets of it.
struct AppEditing {
  private let context: NSManagedObjectContext
  private let device: SimulatedDevice
  private let model: AppModel
  private(set) var entries: [Oracle.Entry] = []
  private(set) var lines: [String] = []

  init(context: NSManagedObjectContext, device: SimulatedDevice) {
    self.context = context
    self.device = device
    model = AppModel(version: device.version)
  }

  /// All objects of a kind that are not deleted, in the order of their keys.
  private func all(_ entity: AppEntity) throws -> [NSManagedObject] {
    try context.fetch(NSFetchRequest<NSManagedObject>(entityName: model.name(entity)))
      .filter { !$0.isDeleted }
      .sorted { key($0) < key($1) }
  }

  private func some(_ entity: AppEntity, _ pick: UInt32) throws -> NSManagedObject? {
    let all = try all(entity)
    return all.isEmpty ? nil : all[Int(pick) % all.count]
  }

  private func key(_ object: NSManagedObject?) -> String {
    object?.value(forKey: "key") as? String ?? "?"
  }

  mutating func make(_ change: AppChange) throws {
    switch change {
    case .insert(let entity, let link, let length): try insert(entity, link, length)
    case .edit(let entity, let pick, let attribute, let length):
      guard let object = try some(entity, pick) else { return }
      let names = AppModel.attributes(entity)
      write(object, names[Int(attribute) % names.count], length)
    case .delete(let entity, let pick):
      if let object = try some(entity, pick) { context.delete(object) }
    case .move(let pick, let folder):
      guard let item = try some(.item, pick) else { return }
      link(item, "folder", folder % 4 == 0 ? nil : try some(.folder, folder))
    case .illustrate(let pick, let photo):
      guard let item = try some(.item, pick), let photo = try some(.photo, photo) else { return }
      link(item, "photo", photo)
      entries.append(.linked(.init(key: key(photo), property: "item"), destination: key(item)))
    case .toggleLabel(let pick, let label):
      guard let item = try some(.item, pick), let label = try some(.label, label) else { return }
      toggle(label, of: item)
    }
  }

  private mutating func insert(_ entity: AppEntity, _ pick: UInt32, _ length: Int) throws {
    let object = NSEntityDescription.insertNewObject(
      forEntityName: model.name(entity),
      into: context
    )
    let own = device.nextValue()
    object.setValue(own, forKey: "key")
    entries.append(.born(key: own, entity))
    lines.append("new \(entity.rawValue) \(own)")
    for name in AppModel.attributes(entity) { write(object, name, length) }
    switch entity {
    case .item: if let folder = try some(.folder, pick) { link(object, "folder", folder) }
    case .photo:
      guard let item = try some(.item, pick) else { return }
      link(object, "item", item)
    case .folder, .label: break
    }
  }

  private mutating func write(_ object: NSManagedObject, _ name: String, _ length: Int) {
    let value = device.nextValue()
    let text = AppValue.text(write: value, length: length)
    object.setValue(name == "data" ? Data(text.utf8) : text, forKey: model.property(name))
    entries.append(.wrote(.init(key: key(object), property: name), value: value))
    lines.append("\(key(object)).\(name) = \(value)")
  }

  private mutating func link(_ object: NSManagedObject, _ name: String, _ other: NSManagedObject?) {
    // A context that stays may show another value than the store has; setting what it shows is no change.
    guard object.value(forKey: name) as? NSManagedObject !== other else { return }
    object.setValue(other, forKey: name)
    let destination = other.map { key($0) }
    entries.append(.linked(.init(key: key(object), property: name), destination: destination))
    lines.append("\(key(object)).\(name) → \(destination ?? "nothing")")
  }

  private mutating func toggle(_ label: NSManagedObject, of item: NSManagedObject) {
    let labels = item.mutableSetValue(forKey: model.property("labels"))
    let isThere = labels.contains(label)
    if isThere { labels.remove(label) } else { labels.add(label) }
    entries.append(
      .linked(
        .init(key: key(item), property: "label \(key(label))"),
        destination: isThere ? nil : key(label)
      )
    )
    lines.append("\(key(item)) \(isThere ? "loses" : "gets") label \(key(label))")
  }

  /// The objects that the save deletes, including those that delete rules cascade to.
  mutating func noteDeletions() throws {
    context.processPendingChanges()
    let gone = context.deletedObjects.map { key($0) }.sorted()
    let born = Set(
      entries.compactMap { entry -> String? in
        if case .born(let key, _) = entry { key } else { nil }
      }
    )
    for key in gone where !born.contains(key) {
      entries.append(.deleted(key: key))
      lines.append("deletes \(key)")
    }
    // An object that one save inserts and deletes leaves no row, so its entries are removed.
    let left = Set(context.insertedObjects.map { key($0) })
    let never = born.subtracting(left)
    guard !never.isEmpty else { return }
    entries.removeAll { entry in
      switch entry {
      case .born(let key, _), .deleted(let key): never.contains(key)
      case .wrote(let slot, _): never.contains(slot.key)
      case .linked(let slot, let destination):
        never.contains(slot.key) || destination.map(never.contains) ?? false
      }
    }
  }
}
