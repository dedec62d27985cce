import CloudKitWebServices

/// A field that a query names: one of the type's, or a system field under any of its names.
struct QueryField: Hashable, Sendable {
  var schema: FieldSchema

  var name: String { schema.name }

  private static let systemNames = [
    "recordName": "___recordID",
    "createdTimestamp": "___createTime",
    "modifiedTimestamp": "___modTime",
    "createdUserRecordName": "___createdBy",
    "modifiedUserRecordName": "___modifiedBy",
    "parent": "___parent",
    "share": "___share",
    "recordChangeTag": "___etag",
  ]

  /// Finds the field, or says what is wrong with its name.
  init(
    fieldName: String?,
    systemFieldName: String?,
    in type: RecordTypeSchema
  ) throws(ErrorDictionary) {
    let name: String
    if let system = systemFieldName {
      guard let known = Self.systemNames[system] ?? (system.hasPrefix("___") ? system : nil) else {
        throw ErrorDictionary(.badRequest, "Unknown field '\(system)'")
      }
      name = known
    } else if let fieldName {
      name = fieldName
    } else {
      throw ErrorDictionary(.badRequest, "missing required field 'fieldName'")
    }
    if let declared = type[field: name] {
      schema = declared
    } else if name == "___parent" || name == "___share" {
      schema = FieldSchema(name: name, type: .typed(.reference), indexes: [.queryable])
    } else if let system = FieldSchema.system.first(where: { $0.name == name }) {
      schema = system
    } else {
      throw ErrorDictionary(.badRequest, "Unknown field '\(name)'")
    }
  }

  /// The operand as this field's values are compared.
  func operand(
    _ value: FieldValue?,
    isList: Bool
  ) throws(ErrorDictionary) -> FieldContent {
    guard let content = value?.content, content != .null else {
      throw ErrorDictionary(.badRequest, "the filter on '\(name)' has no value")
    }
    let scalar = schema.type.wireType?.element ?? schema.type.wireType
    let candidates = scalar.map { [$0] } ?? [.int64, .double]
    for type in candidates {
      if let wanted = isList ? type.list : type,
        let fitting = FieldCoercion.value(content, as: wanted)
      {
        return fitting
      }
    }
    // Names of records and users may come as plain strings.
    if scalar == .reference {
      let texts = FieldCoercion.value(content, as: isList ? .stringList : .string)
      if case .string(let text) = texts { return .string(text) }
      if case .stringList(let list) = texts { return .stringList(list) }
    }
    throw ErrorDictionary(
      .badRequest,
      "the value of the filter on '\(name)' does not fit its type \(schema.type.tag)"
    )
  }
}
