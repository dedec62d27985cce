import Foundation
import OpenCoreData

/// The contents of a device's store, as the app shows them: objects by their keys, under the names of the app's
/// first version.
struct AppState: Hashable, Sendable {
  struct Object: Hashable, Sendable {
    var entity: AppEntity
    /// The name of the write that each attribute holds; its padding is checked and left out.
    var values: [String: String] = [:]
    /// The key of the object that each to-one relationship leads to.
    var links: [String: String] = [:]
    /// The keys of an item's labels.
    var labels: Set<String> = []
  }

  var objects: [String: Object] = [:]
  /// The violations in a store: two objects of one key, torn values, inverses that disagree.
  var defects: [Defect] = []

  struct Defect: Hashable, Sendable {
    var guarantee: Guarantee
    var text: String
    /// Whether it may be so between two pages of an import, as both sides of a one-to-one relationship are
    /// records of their own: a known weakness, which `Documentation/Reliability.md` lists.
    var mayPass = false
  }

  /// Reads everything that a context sees.
  init(_ context: NSManagedObjectContext, version: Int) throws {
    let model = AppModel(version: version)
    for entity in AppEntity.allCases {
      let all = try context.fetch(
        NSFetchRequest<NSManagedObject>(entityName: model.name(entity))
      )
      for object in all where !object.isDeleted { read(object, entity, model) }
    }
    checkInverses()
  }

  private mutating func read(
    _ object: NSManagedObject,
    _ entity: AppEntity,
    _ model: AppModel
  ) {
    guard let key = object.value(forKey: "key") as? String else {
      defects.append(Defect(guarantee: .nothingVanished, text: "a \(entity.rawValue) has no key"))
      return
    }
    var state = Object(entity: entity)
    for name in AppModel.attributes(entity) {
      let value = object.value(forKey: model.property(name))
      guard let text = Self.text(value) else { continue }
      guard let write = AppValue.write(in: text) else {
        defects.append(
          Defect(guarantee: .nothingInvented, text: "\(key).\(name) holds \(text.prefix(40))")
        )
        continue
      }
      state.values[name] = write
    }
    func link(_ name: String) {
      guard let other = object.value(forKey: name) as? NSManagedObject else { return }
      state.links[name] = other.value(forKey: "key") as? String ?? "?"
    }
    switch entity {
    case .item:
      link("folder")
      link("photo")
      let labels = object.value(forKey: model.property("labels")) as? Set<AnyHashable> ?? []
      for case let label as NSManagedObject in labels {
        state.labels.insert(label.value(forKey: "key") as? String ?? "?")
      }
    case .photo: link("item")
    case .folder, .label: break
    }
    if objects.updateValue(state, forKey: key) != nil {
      defects.append(Defect(guarantee: .nothingDoubled, text: "two objects have the key \(key)"))
    }
  }

  private static func text(_ value: Any?) -> String? {
    switch value {
    case let text as String: text
    case let data as Data: String(decoding: data, as: UTF8.self)
    default: nil
    }
  }

  private mutating func checkInverses() {
    for (key, object) in objects.sorted(by: { $0.key < $1.key }) {
      for (name, other) in object.links.sorted(by: { $0.key < $1.key }) {
        guard let target = objects[other] else {
          defects.append(
            Defect(
              guarantee: .graphIntegrity,
              text: "\(key).\(name) leads to \(other), which is gone",
              mayPass: name != "folder"
            )
          )
          continue
        }
        let inverse = name == "photo" ? "item" : name == "item" ? "photo" : nil
        if let inverse, target.links[inverse] != key {
          defects.append(
            Defect(
              guarantee: .graphIntegrity,
              text: "\(key).\(name) is \(other), but not back",
              mayPass: true
            )
          )
        }
      }
      for label in object.labels.sorted() where objects[label] == nil {
        defects.append(
          Defect(guarantee: .graphIntegrity, text: "\(key) has the label \(label), which is gone")
        )
      }
    }
  }

  /// The differences of two states, in lines.
  func differences(from other: AppState) -> [String] {
    Set(objects.keys).union(other.objects.keys).sorted().compactMap { key in
      let (left, right) = (objects[key], other.objects[key])
      guard left != right else { return nil }
      return "\(key): \(left.map(Self.line) ?? "absent") / \(right.map(Self.line) ?? "absent")"
    }
  }

  private static func line(_ object: Object) -> String {
    let values = object.values.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
    let links = object.links.sorted { $0.key < $1.key }.map { "\($0.key)→\($0.value)" }
    let labels = object.labels.isEmpty ? "" : " labels=\(object.labels.sorted())"
    return (values + links).joined(separator: " ") + labels
  }
}

/// The values that the app writes: the device and its count, then padding that is a function of them.
enum AppValue {
  static func text(write: String, length: Int) -> String {
    let rest = length - write.utf8.count - 1
    guard rest > 0 else { return write }
    return write + " " + String(repeating: String(write.suffix(1)), count: rest)
  }

  /// The write that a value names; nil where the value is not whole.
  static func write(in text: String) -> String? {
    let parts = text.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
    guard let write = parts.first, write.contains("#"), let last = write.last else { return nil }
    if parts.count == 2, !parts[1].allSatisfy({ $0 == last }) { return nil }
    return String(write)
  }
}
