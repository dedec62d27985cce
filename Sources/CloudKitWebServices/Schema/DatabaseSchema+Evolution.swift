/// Schema transitions: from a file into development, and from development into production.
extension DatabaseSchema {
  /// The reasons why a schema can't replace another, a sentence each.
  package struct Refusal: Error, Hashable, Sendable, CustomStringConvertible {
    package var reasons: [String]

    package init(reasons: [String]) { self.reasons = reasons }

    package var description: String { reasons.joined(separator: "\n") }
  }

  /// The schema with its implicit parts: the system fields of each type, and the type `Users`.
  package var completed: DatabaseSchema {
    var schema = self
    if schema[recordType: RecordTypeSchema.users.name] == nil { schema.recordTypes.append(.users) }
    for index in schema.recordTypes.indices {
      let missing = FieldSchema.system.filter {
        schema.recordTypes[index][field: $0.name] == nil
      }
      schema.recordTypes[index].fields += missing
    }
    if let users = schema.recordTypes.firstIndex(where: { $0.name == RecordTypeSchema.users.name }),
      schema.recordTypes[users][field: RecordTypeSchema.rolesField] == nil
    {
      schema.recordTypes[users].fields.append(
        FieldSchema(name: RecordTypeSchema.rolesField, type: .typed(.int64List))
      )
    }
    return schema
  }

  /// This development schema replaced by the schema of a file.
  ///
  /// Types, fields and roles that the file lacks are removed; if production has one, the import is
  /// refused. A field keeps its type and its encryption.
  package func importing(
    _ file: DatabaseSchema,
    production: DatabaseSchema
  ) throws(Refusal) -> DatabaseSchema {
    var next = file.completed
    var reasons = next.problems
    for deployed in production.completed.recordTypes {
      guard let type = next[recordType: deployed.name] else {
        reasons.append(
          "Cannot delete record type '\(deployed.name)', which is in the production schema"
        )
        continue
      }
      for field in deployed.fields where type[field: field.name] == nil {
        reasons.append(
          "Cannot delete field '\(field.name)' of record type '\(type.name)', which is in the "
            + "production schema"
        )
      }
    }
    for role in production.roles where !next.roles.contains(role) {
      reasons.append("Cannot delete role '\(role)', which is in the production schema")
    }
    reasons += next.typeChanges(from: self)
    reasons += next.typeChanges(from: production).filter { !reasons.contains($0) }
    guard reasons.isEmpty else { throw Refusal(reasons: reasons) }
    next.numberRoles(after: self)
    return next
  }

  /// This production schema with the additions of development; nothing is removed.
  package func promoting(_ development: DatabaseSchema) throws(Refusal) -> DatabaseSchema {
    let development = development.completed
    var next = completed
    let reasons = development.problems + development.typeChanges(from: self)
    guard reasons.isEmpty else { throw Refusal(reasons: reasons) }
    for role in development.roles where !next.roles.contains(role) { next.roles.append(role) }
    for type in development.recordTypes {
      guard let index = next.recordTypes.firstIndex(where: { $0.name == type.name }) else {
        next.recordTypes.append(type)
        continue
      }
      next.recordTypes[index].grants = type.grants
      for field in type.fields {
        let fields = next.recordTypes[index].fields
        if let known = fields.firstIndex(where: { $0.name == field.name }) {
          next.recordTypes[index].fields[known] = field
        } else {
          next.recordTypes[index].fields.append(field)
        }
      }
    }
    // User records contain the numbers, so both environments must give them the same meaning.
    next.roleNumbers.merge(development.roleNumbers) { $1 }
    next.numberRoles(after: self)
    return next
  }

  private func typeChanges(from old: DatabaseSchema) -> [String] {
    var reasons: [String] = []
    for type in recordTypes {
      guard let before = old[recordType: type.name] else { continue }
      for field in type.fields {
        guard let known = before[field: field.name],
          !field.type.canFollow(known.type)
        else { continue }
        reasons.append(
          "Cannot change the type of field '\(field.name)' of record type '\(type.name)' from "
            + "\(known.type.text) to \(field.type.text)"
        )
      }
    }
    return reasons
  }

  /// Assigns a number to each role that has none.
  package mutating func numberRoles(after old: DatabaseSchema) {
    roleNumbers.merge(old.roleNumbers) { mine, _ in mine }
    var last = roleNumbers.values.max() ?? 0
    for role in roles where roleNumbers[role] == nil {
      last += 1
      roleNumbers[role] = last
    }
  }
}

extension FieldSchemaType {
  /// An undetermined number type may become a specific one, but not the other way.
  fileprivate func canFollow(_ old: FieldSchemaType) -> Bool {
    if case .number(nil) = old, case .number = self { return true }
    return self == old
  }
}
