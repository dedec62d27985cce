/// Number fields that the server has with another type than their attributes.
///
/// A field keeps its type in CloudKit, while a migration makes an integer attribute a double, or the other
/// way round. A number that the field's type holds is sent in that type; any other one is refused
/// by the server, with its record.
package struct FieldKinds: Hashable, Sendable {
  package enum Kind: String, Hashable, Sendable {
    case integer
    case double
  }

  /// By record type and field.
  private var kinds: [String: Kind] = [:]
  /// Fields that a copy has with the types of their attributes.
  private var usual: [String: Kind] = [:]

  package init() {}

  package var isEmpty: Bool { kinds.isEmpty && usual.isEmpty }

  /// What a copy of the server's says of the types of its number fields, those of former names too.
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

  /// Takes over what another copy says: the server may be another one by now, or its schema made again.
  package mutating func add(_ other: FieldKinds) {
    // Entities of one record type can differ in what is usual.
    for (key, kind) in other.usual where kinds[key] != kind { kinds[key] = nil }
    kinds.merge(other.kinds) { $1 }
  }

  /// The values as the server's fields take them, as far as they fit.
  ///
  /// A former field that does not take the value is left out: earlier versions of the app then keep what
  /// they read last.
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

  /// A number in a field's type; nil where that cannot hold it.
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
  /// The kind of the field that a number of this form makes; nil for what is no number.
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
    FieldKinds(text: try books.text(.fieldKinds) ?? "")
  }

  /// Notes what a copy of the server's says of the types of its fields.
  func learnFieldKinds(from fields: FieldBag, of entity: EntityMapping) throws {
    let found = FieldKinds(of: fields, entity)
    guard !found.isEmpty else { return }
    let known = try fieldKinds()
    var all = known
    all.add(found)
    if all != known { try books.setMeta(.fieldKinds, .text(all.text)) }
  }

  /// Notes what the base copies say, where another version of the model has other types.
  func learnFieldKindsFromBases() throws {
    for name in mapping.entityNames {
      guard let entity = mapping.entity(named: name) else { continue }
      for record in try books.records(entity: name, after: 0, limit: Self.sampleSize) {
        if let base = record.base { try learnFieldKinds(from: base, of: entity) }
      }
    }
  }

  /// Records of an entity that tell of its fields; one that lacks a value says nothing of its field.
  private static var sampleSize: Int { 100 }
}
