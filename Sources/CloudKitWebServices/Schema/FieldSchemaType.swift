/// The declared type of a field.
package enum FieldSchemaType: Hashable, Sendable {
  case typed(FieldType, isEncrypted: Bool = false)
  /// A number created without a type tag, with the type that was determined later.
  case number(preferred: FieldType?)

  /// The type of this field's values on the wire; nil for an undetermined number, which accepts
  /// both.
  package var wireType: FieldType? {
    switch self {
    case .typed(let type, _): type
    case .number(let preferred): preferred
    }
  }

  /// The scalar types of a value of this field, or of the elements of its list, the preferred one
  /// first.
  package var elementTypes: [FieldType] {
    switch self {
    case .typed(let type, _): [type.element ?? type]
    case .number(.double?): [.double, .int64]
    case .number: [.int64, .double]
    }
  }

  package var isEncrypted: Bool {
    if case .typed(_, let isEncrypted) = self { isEncrypted } else { false }
  }

  /// The indexes that a field of this type can have.
  package var possibleIndexes: Set<FieldIndex> {
    guard !isEncrypted else { return [] }
    switch wireType?.element ?? wireType {
    case .string: return [.queryable, .searchable, .sortable]
    case .asset: return []
    default: return [.queryable, .sortable]
    }
  }

  /// The indexes that development creates for a new field of this type.
  package var automaticIndexes: Set<FieldIndex> {
    guard !isEncrypted else { return [] }
    switch wireType?.element ?? wireType {
    case .string: return [.queryable, .searchable, .sortable]
    case .int64, .double, .timestamp, .bytes, .location, nil: return [.queryable, .sortable]
    case .reference: return [.queryable]
    default: return []
    }
  }

  /// The type in the schema language.
  package var text: String {
    switch self {
    case .number(nil): return "NUMBER"
    case .number(let preferred?): return "NUMBER PREFERRED AS \(Self.word(preferred))"
    case .typed(let type, let isEncrypted):
      let primitive = (isEncrypted ? "ENCRYPTED " : "") + Self.word(type.element ?? type)
      return type.isList ? "LIST<\(primitive)>" : primitive
    }
  }

  /// The type's name in errors: `ENCRYPTED_STRING`, `STRING_LIST`.
  package var tag: String {
    switch self {
    case .number(let preferred): preferred?.rawValue ?? "NUMBER"
    case .typed(let type, let isEncrypted): (isEncrypted ? "ENCRYPTED_" : "") + type.rawValue
    }
  }

  private static func word(_ type: FieldType) -> String {
    type == .asset ? "ASSET" : type.rawValue
  }

  /// The scalar type of a name in the schema language.
  static func scalar(_ word: String) -> FieldType? {
    guard let type = FieldType(tag: word.uppercased()), !type.isList, word.uppercased() != "ASSETID"
    else { return nil }
    return type
  }
}

extension FieldSchemaType: Codable {
  package init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    var parser = SchemaParser(try container.decode(String.self))
    do {
      self = try parser.type()
    } catch {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "\(error)")
    }
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(text)
  }
}
