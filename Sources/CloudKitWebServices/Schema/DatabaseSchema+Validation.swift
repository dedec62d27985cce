extension DatabaseSchema {
  /// The parts of a schema that are invalid although the language can express them, a sentence
  /// each.
  package var problems: [String] {
    var problems: [String] = []
    for role in roles where SchemaGrant.systemRoles.contains(role) || !Self.isName(role) {
      problems.append("Invalid role name '\(role)'")
    }
    for type in recordTypes { problems += self.problems(of: type) }
    return problems
  }

  private func problems(of type: RecordTypeSchema) -> [String] {
    var problems: [String] = []
    if !Self.isName(type.name), !Self.isSystemName(type.name) {
      problems.append("Invalid record type name '\(type.name)'")
    }
    for field in type.fields {
      if field.isSystem {
        if FieldSchema.system(field.name) == nil {
          problems.append("Unknown system field '\(field.name)' in record type '\(type.name)'")
        }
      } else if !Self.isName(field.name), !Self.isSystemName(field.name) {
        problems.append("Invalid field name '\(field.name)' in record type '\(type.name)'")
      }
      for index in FieldIndex.allCases
      where field.indexes.contains(index) && !field.type.possibleIndexes.contains(index) {
        problems.append(
          "Field '\(field.name)' in record type '\(type.name)' has the type \(field.type.text) and "
            + "cannot be marked \(index.rawValue)"
        )
      }
    }
    for grant in type.grants {
      if !SchemaGrant.systemRoles.contains(grant.role), !roles.contains(grant.role) {
        problems.append("Unknown role '\(grant.role)' in a grant on record type '\(type.name)'")
      }
      if grant.role == SchemaGrant.world, grant.permissions != [.read] {
        problems.append(
          "Only READ can be granted to '\(SchemaGrant.world)' on record type '\(type.name)'"
        )
      }
    }
    return problems
  }

  /// Whether a name is an ASCII letter followed by ASCII letters, digits and underscores.
  private static func isName(_ name: String) -> Bool {
    guard let first = name.first, first.isASCII, first.isLetter, name.utf8.count <= 255 else {
      return false
    }
    return name.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
  }

  /// Names with the prefix `cloudkit.` belong to the service, such as `cloudkit.share`.
  private static func isSystemName(_ name: String) -> Bool {
    name.lowercased().hasPrefix("cloudkit.") && name.utf8.count <= 255
  }
}
