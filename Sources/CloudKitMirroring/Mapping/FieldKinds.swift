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

  package init() {}

  package var isEmpty: Bool { kinds.isEmpty }

  /// The number fields of a copy of the server's that have another type than their attributes.
  package init(of fields: FieldBag, _ entity: EntityMapping) {
    for attribute in entity.attributes {
      guard let usual = attribute.form.numberKind else { continue }
      let found: Kind
      switch fields[attribute.field] {
      case .integer?: found = .integer
      case .double?: found = .double
      default: continue
      }
      if found != usual { kinds[Self.key(entity.recordType, attribute.field)] = found }
    }
  }

  /// Takes over what another copy says.
  package mutating func add(_ other: FieldKinds) { kinds.merge(other.kinds) { $1 } }

  /// The values as the server's fields take them, as far as they fit.
  package func adapted(
    _ values: [String: MirrorValue],
    recordType: String
  ) -> [String: MirrorValue] {
    guard !kinds.isEmpty else { return values }
    var values = values
    for (field, value) in values {
      switch (kinds[Self.key(recordType, field)], value) {
      case (.integer?, .double(let number)):
        if let integer = Int64(exactly: number) { values[field] = .integer(integer) }
      case (.double?, .integer(let number)):
        if Int64(exactly: Double(number)) == number { values[field] = .double(Double(number)) }
      default: break
      }
    }
    return values
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
