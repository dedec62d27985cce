import Effects
import Foundation
import OpenCoreData

/// A graph of objects that covers every entity, attribute and relationship of a model.
struct SampleGraph {
  /// The number of inserted objects, for the report.
  struct Inventory {
    var objects = 0
    var values = 0
    var links = 0
    var entities: Set<String> = []
  }

  /// Three objects of each concrete entity: one, another, and more than two.
  static let objectsPerEntity = 3

  /// The limit for chains of objects that each require another one.
  static let objectLimit = 5000

  let entities: [NSEntityDescription]
  let values: SampleValues

  /// `entities` are those of the configuration to be filled.
  init(entities: [NSEntityDescription], seed: UInt64) {
    self.entities = entities.sorted { ($0.name ?? "") < ($1.name ?? "") }
    values = SampleValues(random: SeededRandomness(seed: seed))
  }

  /// Inserts the graph into a context, without saving.
  func insert(into context: NSManagedObjectContext) -> Inventory {
    var inventory = Inventory()
    var made: [String: [NSManagedObject]] = [:]
    for entity in entities where !entity.isAbstract {
      guard let name = entity.name else { continue }
      for ordinal in 1...Self.objectsPerEntity {
        let object = NSEntityDescription.insertNewObject(forEntityName: name, into: context)
        inventory.objects += 1
        inventory.entities.insert(name)
        inventory.values += fill(object, entity, ordinal: ordinal)
        made[name, default: []].append(object)
      }
    }
    for entity in entities where !entity.isAbstract {
      guard let name = entity.name else { continue }
      for relationship in entity.relationshipsByName.values.sorted(by: { $0.name < $1.name })
      where leads(relationship) {
        inventory.links += link(made[name] ?? [], by: relationship, among: made)
      }
    }
    satisfy(&made, context, &inventory)
    return inventory
  }

  /// Inserts the objects that required relationships still lack.
  private func satisfy(
    _ made: inout [String: [NSManagedObject]],
    _ context: NSManagedObjectContext,
    _ inventory: inout Inventory
  ) {
    var waiting = made.keys.sorted().flatMap { made[$0] ?? [] }
    while let object = waiting.popLast(), inventory.objects < Self.objectLimit {
      for relationship in object.entity.relationshipsByName.values.sorted(by: { $0.name < $1.name })
      {
        let missing = lacking(object, relationship)
        guard missing > 0, let entity = concrete(relationship.destinationEntity),
          let name = entity.name
        else { continue }
        for _ in 0..<missing {
          let other = NSEntityDescription.insertNewObject(forEntityName: name, into: context)
          inventory.objects += 1
          inventory.links += 1
          inventory.values += fill(other, entity, ordinal: inventory.objects)
          made[name, default: []].append(other)
          waiting.append(other)
          if !relationship.isToMany {
            object.setValue(other, forKey: relationship.name)
          } else if relationship.isOrdered {
            object.mutableOrderedSetValue(forKey: relationship.name).add(other)
          } else {
            object.mutableSetValue(forKey: relationship.name).add(other)
          }
        }
      }
    }
  }

  /// The number of objects that a relationship still needs to be valid.
  private func lacking(
    _ object: NSManagedObject,
    _ relationship: NSRelationshipDescription
  ) -> Int {
    guard !relationship.isOptional || relationship.minCount > 0 else { return 0 }
    let value = object.value(forKey: relationship.name)
    guard relationship.isToMany else {
      return relationship.isOptional || value != nil ? 0 : 1
    }
    let count = (value as? NSOrderedSet)?.count ?? (value as? NSSet)?.count ?? 0
    return relationship.isOptional && count == 0 ? 0 : max(0, relationship.minCount - count)
  }

  private func concrete(_ entity: NSEntityDescription?) -> NSEntityDescription? {
    guard let entity else { return nil }
    return entities.first { !$0.isAbstract && $0.isKindOf(entity: entity) }
  }

  private func fill(
    _ object: NSManagedObject,
    _ entity: NSEntityDescription,
    ordinal: Int
  ) -> Int {
    var count = 0
    for attribute in entity.attributesByName.values.sorted(by: { $0.name < $1.name })
    where !(attribute is NSDerivedAttributeDescription) {
      guard let value = values.value(for: attribute, ordinal: ordinal) else { continue }
      object.setValue(value, forKey: attribute.name)
      count += 1
    }
    return count
  }

  /// Whether this side of a pair of inverses is set; the other one follows.
  private func leads(_ relationship: NSRelationshipDescription) -> Bool {
    guard let inverse = relationship.inverseRelationship else { return true }
    // To-one sides are set, so that a required to-one gets its object.
    if relationship.isToMany != inverse.isToMany { return !relationship.isToMany }
    return key(relationship) <= key(inverse)
  }

  private func key(_ relationship: NSRelationshipDescription) -> String {
    "\(relationship.entity.name ?? "").\(relationship.name)"
  }

  private func link(
    _ sources: [NSManagedObject],
    by relationship: NSRelationshipDescription,
    among made: [String: [NSManagedObject]]
  ) -> Int {
    guard let destination = relationship.destinationEntity else { return 0 }
    let targets = entities.filter { !$0.isAbstract && $0.isKindOf(entity: destination) }
      .compactMap { $0.name }.sorted()
      .flatMap { made[$0] ?? [] }
    guard !targets.isEmpty else { return 0 }
    var count = 0
    for (index, source) in sources.enumerated() {
      let offset = (index + Int(values.next() % 2)) % targets.count
      if relationship.isToMany, relationship.inverseRelationship == nil {
        // Without an inverse an object belongs to at most one source.
        let own = targets.enumerated().filter { $0.offset % sources.count == index }
          .map(\.element)
        count += linkMany(source, relationship, own, 0)
      } else if relationship.isToMany {
        count += linkMany(source, relationship, targets, offset)
      } else if source.value(forKey: relationship.name) == nil {
        // A one-to-one is paired by index, so that no pair takes another's partner.
        let isOneToOne = relationship.inverseRelationship.map { !$0.isToMany } ?? false
        guard !isOneToOne || index < targets.count else { continue }
        let target = targets[isOneToOne ? index : offset]
        source.setValue(target, forKey: relationship.name)
        count += 1
      }
    }
    return count
  }

  private func linkMany(
    _ source: NSManagedObject,
    _ relationship: NSRelationshipDescription,
    _ targets: [NSManagedObject],
    _ offset: Int
  ) -> Int {
    guard !targets.isEmpty else { return 0 }
    let most = relationship.maxCount > 0 ? relationship.maxCount : 2
    let wanted = min(targets.count, max(relationship.minCount, min(most, 2)))
    let chosen = (0..<wanted).map { targets[(offset + $0) % targets.count] }
    if relationship.isOrdered {
      source.setValue(NSOrderedSet(array: chosen), forKey: relationship.name)
    } else {
      source.setValue(Set(chosen), forKey: relationship.name)
    }
    return chosen.count
  }
}
