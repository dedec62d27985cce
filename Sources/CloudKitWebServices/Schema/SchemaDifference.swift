/// The differences between two schemas, item by item.
package struct SchemaDifference: Hashable, Sendable {
  /// One item that was added, removed or changed.
  package struct Change: Codable, Hashable, Sendable {
    package enum Kind: String, Codable, Hashable, Sendable {
      case added, removed, changed
    }

    package enum Subject: String, Codable, Hashable, Sendable {
      case role, recordType, field, indexes, type, grants
    }

    package var kind: Kind
    package var subject: Subject
    package var recordType: String?
    package var name: String
    /// The old item in the schema language; nil if it was added.
    package var before: String?
    package var after: String?
  }

  package private(set) var changes: [Change] = []

  package var isEmpty: Bool { changes.isEmpty }

  /// Computes the changes from the old schema to the new one.
  package init(from old: DatabaseSchema, to new: DatabaseSchema) {
    for role in Set(old.roles).union(new.roles).sorted() {
      add(
        .role,
        nil,
        role,
        old.roles.contains(role) ? role : nil,
        new.roles.contains(role) ? role : nil
      )
    }
    let names = Set(old.recordTypes.map(\.name)).union(new.recordTypes.map(\.name))
    for name in names.sorted() {
      compare(name, old[recordType: name], new[recordType: name])
    }
  }

  private mutating func compare(
    _ name: String,
    _ old: RecordTypeSchema?,
    _ new: RecordTypeSchema?
  ) {
    guard let old, let new else {
      return add(.recordType, name, name, old?.name, new?.name)
    }
    for field in Set(old.fields.map(\.name)).union(new.fields.map(\.name)).sorted() {
      let (before, after) = (old[field: field], new[field: field])
      // A system field that a file omits still exists, without an index.
      let isSystem = FieldSchema.system(field) != nil
      guard let before = before ?? (isSystem ? FieldSchema.system(field) : nil),
        let after = after ?? (isSystem ? FieldSchema.system(field) : nil)
      else {
        add(.field, name, field, before?.declaration, after?.declaration)
        continue
      }
      add(.type, name, field, before.type.text, after.type.text)
      add(.indexes, name, field, before.indexWords, after.indexWords)
    }
    for role in Set(old.grants.map(\.role)).union(new.grants.map(\.role)).sorted() {
      add(.grants, name, role, old.grant(to: role), new.grant(to: role))
    }
  }

  private mutating func add(
    _ subject: Change.Subject,
    _ recordType: String?,
    _ name: String,
    _ before: String?,
    _ after: String?
  ) {
    guard before != after else { return }
    changes.append(
      Change(
        kind: before == nil ? .added : after == nil ? .removed : .changed,
        subject: subject,
        recordType: recordType,
        name: name,
        before: before,
        after: after
      )
    )
  }
}

extension SchemaDifference.Change: CustomStringConvertible {
  package var description: String {
    let sign =
      switch kind {
      case .added: "+"
      case .removed: "-"
      case .changed: "~"
      }
    let place = recordType.map { "\($0)." } ?? ""
    func words(_ text: String?) -> String { text.map { $0.isEmpty ? "(none)" : $0 } ?? "(none)" }
    switch subject {
    case .role: return "\(sign) role \(name)"
    case .recordType: return "\(sign) record type \(name)"
    case .field: return "\(sign) field \(place)\(name) \(after ?? before ?? "")"
    case .type: return "\(sign) field \(place)\(name): \(words(before)) -> \(words(after))"
    case .indexes: return "\(sign) indexes \(place)\(name): \(words(before)) -> \(words(after))"
    case .grants: return "\(sign) grants \(place)\(name): \(words(before)) -> \(words(after))"
    }
  }
}

extension FieldSchema {
  fileprivate var indexWords: String {
    FieldIndex.allCases.filter(indexes.contains).map(\.rawValue).joined(separator: " ")
  }

  fileprivate var declaration: String {
    ([type.text] + FieldIndex.allCases.filter(indexes.contains).map(\.rawValue))
      .joined(separator: " ")
  }
}

extension RecordTypeSchema {
  fileprivate func grant(to role: String) -> String? {
    grants.first { $0.role == role }.map { grant in
      SchemaGrant.Permission.allCases.filter(grant.permissions.contains).map(\.rawValue)
        .joined(separator: ", ")
    }
  }
}
