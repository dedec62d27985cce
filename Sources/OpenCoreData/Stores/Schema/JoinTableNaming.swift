import Foundation

/// Names the tables of many-to-many relationships.
///
/// Entities are visited by name, ignoring case and hierarchy, each with its inherited
/// relationships; the first visit of a pair names its table. (A child whose name sorts early
/// therefore makes its parent's side the naming one.) A column name that another join table already
/// has gets a numeric suffix.
struct JoinTableNaming {
  let numbering: [NumberedEntity]
  let numbers: [ObjectIdentifier: Int32]
  let existing: ExistingTables?

  func tables() throws -> [JoinTable] {
    var done: Set<ObjectIdentifier> = []
    var used: Set<String> = []
    var result: [JoinTable] = []
    for entity in numbering.map(\.entity).sorted(by: EntityNumbering.precedes) {
      let relationships = entity.relationshipsByName.values
        .filter { $0.isToMany && !$0.isTransient && $0.inverseRelationship?.isToMany == true }
        .sorted { VersionHash.precedes($0.name, $1.name) }
      for relationship in relationships {
        guard let inverse = relationship.inverseRelationship,
          let source = number(declaring: relationship), let target = number(declaring: inverse),
          done.insert(ObjectIdentifier(relationship)).inserted
        else { continue }
        done.insert(ObjectIdentifier(inverse))
        // If one entity declares both sides, either may name the table; most files use the later
        // name.
        let isSwapped =
          source == target && VersionHash.precedes(relationship.name, inverse.name)
        let table =
          isSwapped
          ? try table(inverse, relationship, source: target, target: source, used: &used)
          : try table(relationship, inverse, source: source, target: target, used: &used)
        result.append(table)
      }
    }
    return result
  }

  private func number(declaring relationship: NSRelationshipDescription) -> Int32? {
    relationship.declaringEntity.flatMap { numbers[ObjectIdentifier($0)] }
  }

  private func table(
    _ relationship: NSRelationshipDescription,
    _ inverse: NSRelationshipDescription,
    source: Int32,
    target: Int32,
    used: inout Set<String>
  ) throws -> JoinTable {
    if let existing {
      if let found = find(relationship, inverse, source, target, in: existing) { return found }
      if let found = find(inverse, relationship, target, source, in: existing) { return found }
      throw StoreError(
        .incompatibleSchema,
        "The file has no table for the relationship \(relationship.name).",
        remedy: "Open the store with the model that it was written with."
      )
    }
    let isReflexive = relationship === inverse
    let forward = Self.unused("Z_\(target)\(relationship.name.uppercased())", &used)
    let back =
      isReflexive ? "REFLEXIVE" : Self.unused("Z_\(source)\(inverse.name.uppercased())", &used)
    let ordered = "Z_FOK_" + forward.dropFirst(2)
    let backOrdered = "Z_FOK_" + back.dropFirst(2)
    return JoinTable(
      name: "Z_\(source)\(relationship.name.uppercased())",
      relationship: relationship,
      sourceColumn: back,
      destinationColumn: forward,
      orderColumn: relationship.isOrdered ? ordered : nil,
      inverseOrderColumn: inverse.isOrdered && !isReflexive ? backOrdered : nil,
      isReflexive: isReflexive
    )
  }

  /// The table of the file that the relationship names, with its columns identified by their names.
  private func find(
    _ relationship: NSRelationshipDescription,
    _ inverse: NSRelationshipDescription,
    _ source: Int32,
    _ target: Int32,
    in file: ExistingTables
  ) -> JoinTable? {
    let name = "Z_\(source)\(relationship.name.uppercased())"
    guard let columns = file.columns[name] else { return nil }
    let keys = columns.filter { !$0.hasPrefix("Z_FOK_") }
    let forward = relationship.name.uppercased()
    let back = inverse.name.uppercased()
    guard keys.count == 2 else { return nil }
    let destinations = keys.filter { Self.matches($0, forward) }
    let sources = keys.filter { $0 == "REFLEXIVE" || Self.matches($0, back) }
    // The exact name first: equal names of both sides differ only in the entity's number.
    let destination =
      destinations.first { $0 == "Z_\(target)\(forward)" }
      ?? destinations.first { candidate in sources.contains { $0 != candidate } }
    guard let destination, let origin = sources.first(where: { $0 != destination }) else {
      return nil
    }
    func order(_ column: String) -> String? {
      columns.first { $0 == "Z_FOK_" + column.dropFirst(2) }
    }
    return JoinTable(
      name: name,
      relationship: relationship,
      sourceColumn: origin,
      destinationColumn: destination,
      orderColumn: relationship.isOrdered ? order(destination) : nil,
      inverseOrderColumn: inverse.isOrdered && relationship !== inverse ? order(origin) : nil,
      isReflexive: relationship === inverse
    )
  }

  /// Whether a column is `Z_<number><NAME>`, with an optional numeric suffix.
  private static func matches(_ column: String, _ name: String) -> Bool {
    guard column.hasPrefix("Z_") else { return false }
    let rest = column.dropFirst(2).drop(while: \.isNumber)
    return rest.hasPrefix(name) && rest.dropFirst(name.count).allSatisfy(\.isNumber)
  }

  private static func unused(_ base: String, _ used: inout Set<String>) -> String {
    var name = base
    var number = 1
    while !used.insert(name).inserted {
      name = "\(base)\(number)"
      number += 1
    }
    return name
  }
}
