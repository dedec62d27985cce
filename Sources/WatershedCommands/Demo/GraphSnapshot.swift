import Foundation
import OpenCoreData

/// The contents of a store without keys and pointers, so that two stores can be compared.
package struct GraphSnapshot {
  /// One object: its entity, its values as text, and the destinations of its relationships by name.
  package struct Entry: Equatable {
    package var entityName: String
    package var values: [String: String]
    package var links: [String: [String]]
  }

  /// The objects by identity: a record name, or an object's URI.
  package private(set) var entries: [String: Entry] = [:]
  /// The descriptions of objects without an identity, each of which is a difference.
  package private(set) var nameless: [String] = []

  /// Reads every object of the entities.
  ///
  /// `identify` returns a name of an object that is equal in every store.
  package init(
    of entities: [NSEntityDescription],
    in context: NSManagedObjectContext,
    identify: (NSManagedObjectID) -> String?
  ) throws {
    let roots = entities.filter { $0.superentity == nil }.compactMap(\.name).sorted()
    for name in roots {
      let request = NSFetchRequest<NSManagedObject>(entityName: name)
      for object in try context.fetch(request) {
        guard let identity = identify(object.objectID) else {
          nameless.append("\(object.objectID)")
          continue
        }
        entries[identity] = Self.entry(of: object, identify: identify)
      }
    }
  }

  package var objectCount: Int { entries.count }
  package var valueCount: Int { entries.values.reduce(0) { $0 + $1.values.count } }
  package var linkCount: Int {
    entries.values.reduce(0) { $0 + $1.links.values.reduce(0) { $0 + $1.count } }
  }

  private static func entry(
    of object: NSManagedObject,
    identify: (NSManagedObjectID) -> String?
  ) -> Entry {
    let entity = object.entity
    var entry = Entry(entityName: entity.name ?? "", values: [:], links: [:])
    for (name, attribute) in entity.attributesByName where !attribute.isTransient {
      entry.values[name] = text(object.value(forKey: name))
    }
    for (name, relationship) in entity.relationshipsByName where !relationship.isTransient {
      let related = objects(object.value(forKey: name))
      let names = related.map { identify($0.objectID) ?? "unidentified \($0.objectID)" }
      entry.links[name] = relationship.isOrdered ? names : names.sorted()
    }
    return entry
  }

  private static func objects(_ value: Any?) -> [NSManagedObject] {
    switch value {
    case let object as NSManagedObject: [object]
    case let ordered as NSOrderedSet: ordered.array.compactMap { $0 as? NSManagedObject }
    case let set as NSSet: set.allObjects.compactMap { $0 as? NSManagedObject }
    case let set as Set<NSManagedObject>: Array(set)
    default: []
    }
  }

  /// A text that is equal if and only if the values are.
  private static func text(_ value: Any?) -> String {
    switch value {
    case nil: "nil"
    case let data as Data: "data \(data.count) \(data.base64EncodedString())"
    case let date as Date: "date \(date.timeIntervalSinceReferenceDate)"
    case let dictionary as [String: Any]:
      dictionary.keys.sorted().map { "\($0): \(text(dictionary[$0]))" }.joined(separator: ", ")
    case let value?: "\(value)"
    }
  }
}

extension GraphSnapshot {
  /// All differences between two snapshots, as text; empty if they are equal.
  package static func differences(
    _ left: GraphSnapshot,
    _ right: GraphSnapshot,
    names: (String, String)
  ) -> [String] {
    var found = left.nameless.map { "\(names.0): \($0) has no identity" }
    found += right.nameless.map { "\(names.1): \($0) has no identity" }
    for identity in Set(left.entries.keys).union(right.entries.keys).sorted() {
      switch (left.entries[identity], right.entries[identity]) {
      case (let entry?, nil): found.append("\(entry.entityName) \(identity): only on \(names.0)")
      case (nil, let entry?): found.append("\(entry.entityName) \(identity): only on \(names.1)")
      case (let one?, let other?): found += differences(identity, one, other, names)
      case (nil, nil): continue
      }
    }
    return found
  }

  private static func differences(
    _ identity: String,
    _ one: Entry,
    _ other: Entry,
    _ names: (String, String)
  ) -> [String] {
    guard one != other else { return [] }
    var found: [String] = []
    let place = "\(one.entityName) \(identity)"
    if one.entityName != other.entityName {
      found.append("\(place): is a \(other.entityName) on \(names.1)")
    }
    for key in Set(one.values.keys).union(other.values.keys).sorted()
    where one.values[key] != other.values[key] {
      let left = one.values[key] ?? "absent"
      let right = other.values[key] ?? "absent"
      found.append(
        "\(place).\(key): \(left.prefix(60)) on \(names.0), \(right.prefix(60)) on \(names.1)"
      )
    }
    for key in Set(one.links.keys).union(other.links.keys).sorted()
    where one.links[key] != other.links[key] {
      let left = (one.links[key] ?? []).joined(separator: " ")
      let right = (other.links[key] ?? []).joined(separator: " ")
      found.append("\(place).\(key): [\(left)] on \(names.0), [\(right)] on \(names.1)")
    }
    return found
  }
}
