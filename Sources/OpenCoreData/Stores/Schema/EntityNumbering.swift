/// An entity with its numbers in one store.
struct NumberedEntity {
  var entity: NSEntityDescription
  var name: String
  var number: Int32
  var superNumber: Int32
  var rootNumber: Int32
}

/// Numbers entities as Core Data does: root entities by name, ignoring case, each followed by its
/// descendants in the same order.
enum EntityNumbering {
  static func numbers(
    of members: [NSEntityDescription],
    existing: ExistingTables?
  ) throws -> [NumberedEntity] {
    // A table belongs to the root, so ancestors are included even if the configuration omits them.
    var included: Set<ObjectIdentifier> = []
    var all: [NSEntityDescription] = []
    for entity in members.flatMap({ [$0] + $0.ancestors })
    where included.insert(ObjectIdentifier(entity)).inserted {
      all.append(entity)
    }
    var result: [NumberedEntity] = []
    func visit(_ entity: NSEntityDescription, superNumber: Int32, rootNumber: Int32) {
      let number = Int32(result.count + 1)
      let root = rootNumber == 0 ? number : rootNumber
      result.append(
        NumberedEntity(
          entity: entity,
          name: entity.name ?? "",
          number: number,
          superNumber: superNumber,
          rootNumber: root
        )
      )
      for child in entity.subentities.sorted(by: precedes)
      where included.contains(ObjectIdentifier(child)) {
        visit(child, superNumber: number, rootNumber: root)
      }
    }
    for root in all.filter({ $0.superentity == nil }).sorted(by: precedes) {
      visit(root, superNumber: 0, rootNumber: 0)
    }
    guard let existing else { return result }
    // Numbers are indices of tables in memory; no store assigns others.
    for entity in existing.numbers where entity.number <= 0 {
      throw StoreError(
        .fileReadCorrupt,
        "The file numbers the entity \(entity.name) with \(entity.number), which no store does.",
        remedy: "Restore the file from a backup."
      )
    }
    return try resolve(result, against: existing)
  }

  /// Sorted by name, ignoring case; equal names by byte order.
  static func precedes(_ left: NSEntityDescription, _ right: NSEntityDescription) -> Bool {
    let (first, second) = (left.name ?? "", right.name ?? "")
    let (lower, other) = (first.lowercased(), second.lowercased())
    return lower == other
      ? VersionHash.precedes(first, second) : VersionHash.precedes(lower, other)
  }

  /// Adopts the numbers of the file.
  ///
  /// A migration in place can leave an entity under its former name: then the entity has its
  /// predicted number, if no other entity has it.
  private static func resolve(
    _ predicted: [NumberedEntity],
    against file: ExistingTables
  ) throws -> [NumberedEntity] {
    let byName = Dictionary(
      file.numbers.map { ($0.name, $0.number) },
      uniquingKeysWith: { first, _ in first }
    )
    let known = Set(predicted.map(\.name))
    let unclaimed = Set(file.numbers.filter { !known.contains($0.name) }.map(\.number))
    var mapping: [Int32: Int32] = [0: 0]
    for entry in predicted {
      if let number = byName[entry.name] {
        mapping[entry.number] = number
      } else if let former = entry.entity.explicitRenamingIdentifier, let number = byName[former],
        unclaimed.contains(number)
      {
        mapping[entry.number] = number
      } else if unclaimed.contains(entry.number) {
        mapping[entry.number] = entry.number
      } else {
        throw StoreError(
          .incompatibleSchema,
          "The file does not know the entity \(entry.name).",
          remedy: "Open the store with the model that it was written with."
        )
      }
    }
    return predicted.map { entry in
      var entry = entry
      entry.number = mapping[entry.number] ?? entry.number
      entry.superNumber = mapping[entry.superNumber] ?? entry.superNumber
      entry.rootNumber = mapping[entry.rootNumber] ?? entry.rootNumber
      return entry
    }
    .sorted { $0.number < $1.number }
  }
}
