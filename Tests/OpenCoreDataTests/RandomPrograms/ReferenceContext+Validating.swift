import OpenCoreData

/// Validates a save.
extension ReferenceContext {
  /// The codes of all properties that are not valid.
  var failures: [Int] {
    deleted.sorted().flatMap(deletionFailures)
      + (inserted.union(updated)).sorted().flatMap(failures)
  }

  private func deletionFailures(_ object: Int) -> [Int] {
    relationships(object).compactMap { relationship in
      guard relationship.description.rule == .denyDeleteRule,
        working.destinations(object, relationship).contains(where: isLive)
      else { return nil }
      return NSValidationRelationshipDeniedDeleteError
    }
  }

  private func failures(_ object: Int) -> [Int] {
    guard let entry = working.objects[object] else { return [] }
    var codes: [Int] = []
    if GraphSchema.requiresName(entry.kind), entry.name == nil {
      codes.append(NSValidationMissingMandatoryPropertyError)
    }
    if let rank = entry.rank, rank > GraphSchema.rankLimit {
      codes.append(NSValidationNumberTooLargeError)
    }
    for relationship in relationships(object) {
      let side = relationship.description
      let members = working.destinations(object, relationship)
      if !side.isToMany, !side.isOptional, members.isEmpty {
        codes.append(NSValidationMissingMandatoryPropertyError)
      }
      // Members are counted if the relationship changed.
      if side.maximum > 0, members.count > side.maximum,
        Set(members) != Set(base.destinations(object, relationship))
      {
        codes.append(NSValidationRelationshipExceedsMaximumCountError)
      }
    }
    return codes
  }

  /// Whether two objects have the same unique name.
  var hasDuplicates: Bool {
    var seen: Set<String> = []
    return live.contains { object in
      guard let entry = working.objects[object], let name = entry.name,
        GraphSchema.uniqueKinds.contains(entry.kind)
      else { return false }
      return !seen.insert("\(entry.kind) \(name)").inserted
    }
  }

  func relationships(_ object: Int) -> [Relationship] {
    GraphSchema.relationshipsByKind[working.objects[object]?.kind ?? ""] ?? []
  }

  /// The code of the validation error; nil if all properties are valid.
  var validationCode: Int? {
    let codes = failures
    return codes.count > 1 ? NSValidationMultipleErrorsError : codes.first
  }
}
