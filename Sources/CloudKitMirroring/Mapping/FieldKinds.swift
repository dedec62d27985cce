import WatershedSQLite

/// Number fields whose type on the server differs from their attribute's.
///
/// A field keeps its type in CloudKit, while a migration makes an integer attribute a double, or
/// the reverse. A number that the field's type can represent is sent in that type; any other one is
/// refused by the server, with its record.
package struct FieldKinds: Hashable, Sendable {
  package enum Kind: String, Hashable, Sendable {
    case integer
    case double
  }

  /// The differing kinds, by record type and field.
  private var kinds: [String: Kind] = [:]
  /// Fields whose kind in a copy is that of their attributes.
  private var usual: [String: Kind] = [:]

  package init() {}

  package var isEmpty: Bool { kinds.isEmpty && usual.isEmpty }

  /// Reads the types of the number fields in a copy of the server's, including those of former
  /// names.
  package init(of fields: FieldBag, _ entity: EntityMapping) {
    for attribute in entity.attributes {
      guard let kind = attribute.form.numberKind else { continue }
      let former = entity.formerNames[attribute.name].map(MirrorNames.field)
      for field in [attribute.field, former].compactMap(\.self) {
        let key = Self.key(entity.recordType, field)
        switch fields[field] {
        case .integer?: note(.integer, key, usual: kind)
        case .double?: note(.double, key, usual: kind)
        default: break
        }
      }
    }
  }

  private mutating func note(_ found: Kind, _ key: String, usual kind: Kind) {
    if found == kind { usual[key] = found } else { kinds[key] = found }
  }

  /// Adds the kinds in another copy, which replace the earlier: the server may be another one, or
  /// its schema created again.
  package mutating func add(_ other: FieldKinds) {
    // The attributes' kinds may differ between entities of one record type.
    for (key, kind) in other.usual where kinds[key] != kind { kinds[key] = nil }
    kinds.merge(other.kinds) { $1 }
  }

  /// Converts the values to the types of the server's fields, as far as they fit.
  ///
  /// A former field that cannot store the value is left out: earlier versions of the app then keep
  /// the value that they last read.
  package func adapted(
    _ values: [String: MirrorValue],
    _ entity: EntityMapping,
    recordType: String
  ) -> [String: MirrorValue] {
    guard !kinds.isEmpty else { return values }
    let former = Set(entity.formerNames.values.map(MirrorNames.field))
    var values = values
    for (field, value) in values {
      guard let kind = kinds[Self.key(recordType, field)] else { continue }
      if let adapted = Self.adapted(value, to: kind) {
        values[field] = adapted
      } else if former.contains(field) {
        values[field] = nil
      }
    }
    return values
  }

  /// A number in a field's type; nil if that cannot represent it.
  private static func adapted(_ value: MirrorValue, to kind: Kind) -> MirrorValue? {
    switch (kind, value) {
    case (.integer, .double(let number)): Int64(exactly: number).map(MirrorValue.integer)
    case (.double, .integer(let number)):
      Int64(exactly: Double(number)) == number ? .double(Double(number)) : nil
    default: value
    }
  }

  private static func key(_ recordType: String, _ field: String) -> String {
    "\(recordType) \(field)"
  }

  // MARK: In the metadata

  package var text: String {
    kinds.map { "\($0.key) \($0.value.rawValue)" }.sorted().joined(separator: "\n")
  }

  package init(text: String) {
    for line in text.split(separator: "\n") {
      let parts = line.split(separator: " ")
      guard parts.count == 3, let kind = Kind(rawValue: String(parts[2])) else { continue }
      kinds[Self.key(String(parts[0]), String(parts[1]))] = kind
    }
  }
}

extension AttributeMapping.Form {
  /// The kind of the field that such a number creates; nil for other values.
  fileprivate var numberKind: FieldKinds.Kind? {
    switch self {
    case .integer: .integer
    case .double, .decimal: .double
    case .date, .uuid, .url, .string, .data: nil
    }
  }
}

extension MirrorSession {
  package func fieldKinds() throws -> FieldKinds {
    FieldKinds(text: try metadata.text(.fieldKinds) ?? "")
  }

  /// Records the types of the fields in a copy of the server's.
  func learnFieldKinds(from fields: FieldBag, of entity: EntityMapping) throws {
    let found = FieldKinds(of: fields, entity)
    guard !found.isEmpty else { return }
    let known = try fieldKinds()
    var all = known
    all.add(found)
    if all != known { try metadata.setMeta(.fieldKinds, .text(all.text)) }
  }

  /// Records the types in the base copies, for another version of the model with other types.
  func learnFieldKindsFromBases() throws {
    for name in mapping.entityNames {
      guard let entity = mapping.entity(named: name) else { continue }
      for record in try metadata.records(entity: name, after: 0, limit: Self.sampleSize) {
        if let base = record.base { try learnFieldKinds(from: base, of: entity) }
      }
    }
  }

  /// The number of records of an entity that are read; a record without a value does not show its
  /// field's type.
  private static var sampleSize: Int { 100 }
}
