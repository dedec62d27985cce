import Foundation
import OpenCoreData

/// The entities, attributes and relationships of the random programs, as plain values.
enum GraphSchema {
  /// One relationship; its inverse is the other side of the pair.
  struct Side: Sendable {
    let entity: String
    let name: String
    var isToMany = false
    var isOrdered = false
    var isOptional = true
    var maximum = 0
    var rule = NSDeleteRule.nullifyDeleteRule
  }

  struct Pair: Sendable {
    let sides: [Side]

    init(_ left: Side, _ right: Side) { sides = [left, right] }
  }

  /// A relationship by its index in `pairs`.
  struct Relationship: Hashable, Sendable {
    let pair: Int
    let side: Int

    var inverse: Relationship { Relationship(pair: pair, side: 1 - side) }
    var description: Side { pairs[pair].sides[side] }
    var isOneToOne: Bool { !description.isToMany && !inverse.description.isToMany }
  }

  static let kinds = [
    "Person", "Pet", "Dog", "Card", "Stamp", "Debt", "Club", "Ticket", "Locker",
  ]

  /// The kinds in a relationship's entity: a dog is a pet.
  static func kinds(of entity: String) -> [String] { entity == "Pet" ? ["Pet", "Dog"] : [entity] }

  /// The greatest valid rank.
  static let rankLimit = 9

  static func requiresName(_ kind: String) -> Bool { kind == "Club" }

  /// Kinds whose names are unique in some layouts.
  static let uniqueKinds: Set<String> = ["Stamp", "Ticket"]

  /// Kinds whose rows have all their links, so that a batch request may delete them.
  static let batchKinds = ["Stamp", "Pet", "Debt"]

  static let pairs = [
    Pair(
      Side(entity: "Person", name: "pets", isToMany: true),
      Side(entity: "Pet", name: "owner")
    ),
    Pair(
      Side(entity: "Person", name: "cards", isToMany: true, rule: .cascadeDeleteRule),
      Side(entity: "Card", name: "holder", isOptional: false)
    ),
    Pair(
      Side(entity: "Card", name: "stamps", isToMany: true, rule: .cascadeDeleteRule),
      Side(entity: "Stamp", name: "card")
    ),
    Pair(
      Side(entity: "Person", name: "debts", isToMany: true, rule: .denyDeleteRule),
      Side(entity: "Debt", name: "debtor")
    ),
    Pair(
      Side(entity: "Person", name: "clubs", isToMany: true),
      Side(entity: "Club", name: "members", isToMany: true)
    ),
    Pair(
      Side(entity: "Person", name: "tickets", isToMany: true, isOrdered: true),
      Side(entity: "Ticket", name: "line")
    ),
    Pair(
      Side(entity: "Person", name: "locker", rule: .cascadeDeleteRule),
      Side(entity: "Locker", name: "user", rule: .denyDeleteRule)
    ),
    Pair(
      Side(entity: "Person", name: "reports", isToMany: true),
      Side(entity: "Person", name: "boss")
    ),
    Pair(
      Side(entity: "Club", name: "mascots", isToMany: true, maximum: 2),
      Side(entity: "Pet", name: "mascotOf")
    ),
  ]

  static let relationships = pairs.indices.flatMap { pair in
    [Relationship(pair: pair, side: 0), Relationship(pair: pair, side: 1)]
  }

  /// The relationships by kind, including those of parent entities.
  static let relationshipsByKind = Dictionary(
    uniqueKeysWithValues: kinds.map { kind in
      (kind, relationships.filter { kinds(of: $0.description.entity).contains(kind) })
    }
  )

  static func relationship(_ kind: String, _ name: String) -> Relationship? {
    relationshipsByKind[kind]?.first { $0.description.name == name }
  }

  /// The Core Data model of the schema.
  static func makeModel(isUnique: Bool) -> NSManagedObjectModel {
    var entities: [String: NSEntityDescription] = [:]
    for kind in kinds where kind != "Dog" {
      entities[kind] = ModelParts.entity(
        kind,
        [
          ModelParts.text("name") { $0.isOptional = !requiresName(kind) },
          ModelParts.number("rank") {
            $0.isOptional = true
            $0.limits.maximum = Decimal(rankLimit)
          },
        ]
      )
      if isUnique, uniqueKinds.contains(kind) { entities[kind]?.uniquenessConstraints = [["name"]] }
    }
    for entity in entities.values {
      entity.managedObjectClassName = NSStringFromClass(ProgramObject.self)
    }
    for pair in pairs {
      let made = pair.sides.map { side in
        let relationship = NSRelationshipDescription()
        relationship.name = side.name
        relationship.maxCount = side.isToMany ? side.maximum : 1
        relationship.isOrdered = side.isOrdered
        relationship.isOptional = side.isOptional
        relationship.deleteRule = side.rule
        return relationship
      }
      for (index, side) in pair.sides.enumerated() {
        made[index].destinationEntity = entities[pair.sides[1 - index].entity]
        made[index].inverseRelationship = made[1 - index]
        entities[side.entity]?.properties.append(made[index])
      }
    }
    if let pet = entities["Pet"] {
      let dog = ModelParts.entity("Dog", parent: pet)
      dog.managedObjectClassName = pet.managedObjectClassName
      entities["Dog"] = dog
    }
    let model = NSManagedObjectModel()
    model.entities = kinds.compactMap { entities[$0] }
    return model
  }
}
