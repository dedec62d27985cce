import CloudKitWebServices

/// The schema during one request: in development, saves may extend it.
struct SchemaDraft: Sendable {
  private let container: String
  private let environment: ContainerEnvironment
  private let scope: DatabaseScope
  private let limits: ServiceLimits
  /// 0: none yet.
  private let version: Int64
  private let nextVersion: Int64
  private(set) var schema: DatabaseSchema
  private(set) var isChanged = false
  /// For used record types: the fields that accept a value of their own type unchanged.
  private var plainFields: [String: [String: FieldType]] = [:]

  init(
    _ stored: StoredSchema?,
    _ context: RequestContext,
    _ limits: ServiceLimits,
    now: Int64
  ) {
    container = context.container
    environment = context.environment
    scope = context.scope
    self.limits = limits
    version = stored?.version ?? 0
    nextVersion = StoredSchema.version(after: stored, now: now)
    schema = stored?.schema ?? DatabaseSchema()
  }

  /// Adds the expected schema version to a batch, and the schema if it was extended.
  func contribute(to batch: inout WriteBatch) {
    batch.expectedSchemaVersion = WriteBatch.ExpectedSchema(
      container: container,
      environment: environment,
      version: version
    )
    guard isChanged else { return }
    batch.schema = WriteBatch.SchemaWrite(
      container: container,
      environment: environment,
      stored: StoredSchema(schema: schema, version: nextVersion)
    )
  }

  /// Validates the fields of a record before its save and returns them as declared.
  ///
  /// If it throws, the draft is unchanged.
  mutating func admit(
    _ fields: [String: FieldValue],
    type name: String
  ) throws(ErrorDictionary) -> [String: FieldValue] {
    if areAllPlain(fields, type: name) { return fields }
    let known = schema[recordType: name]
    // Before each is looked up; a type of an imported schema may have more.
    let mostFields = max(limits.fieldsPerType, known?.fields.count ?? 0)
    guard fields.count <= mostFields else {
      throw Self.tooMuch("a record has at most \(mostFields) fields")
    }
    if known == nil {
      guard environment == .development else {
        throw notPromoted("Cannot create new type \(name) in production schema")
      }
      guard NameRules.isTypeOrFieldName(name, limits) else {
        // The error is that of a missing type: no schema can have a type of this name.
        throw ErrorDictionary(.notFound, "Did not find record type: \(name)")
      }
    }
    if known == nil, schema.recordTypes.count >= limits.recordTypes {
      throw Self.tooMuch("a schema has at most \(limits.recordTypes) record types")
    }
    var type = known ?? .new(name)
    let declaredFields = Dictionary(
      type.fields.map { ($0.name, $0) },
      uniquingKeysWith: { first, _ in first }
    )
    var admitted: [String: FieldValue] = [:]
    admitted.reserveCapacity(fields.count)
    // Sorted, so that a request always extends the schema in the same way.
    for (field, value) in fields.sorted(by: { $0.key < $1.key }) {
      if let declared = declaredFields[field] {
        guard !declared.isSystem else {
          throw ErrorDictionary(.badRequest, "'\(field)' is a system field")
        }
        admitted[field] = try Self.fit(value, to: declared, type: name)
      } else if value.content == .null {
        continue
      } else {
        let declared = try newField(field, value, type: name)
        type.fields.append(declared)
        admitted[field] = try Self.fit(value, to: declared, type: name)
      }
    }
    if type.fields.count > declaredFields.count || known == nil {
      try checkSize(of: type, added: type.fields.count - declaredFields.count)
      adopt(type)
    }
    return admitted
  }

  /// Refuses a type that got more fields than a type, or a schema, may have: every request to the
  /// container's environment reads them.
  private func checkSize(
    of type: RecordTypeSchema,
    added: Int
  ) throws(ErrorDictionary) {
    let own = type.fields.count { !$0.isSystem }
    guard own <= limits.fieldsPerType else {
      throw Self.tooMuch("a record type has at most \(limits.fieldsPerType) fields")
    }
    let all = schema.recordTypes.reduce(added) { $0 + $1.fields.count { !$0.isSystem } }
    guard all <= limits.fieldsPerSchema else {
      throw Self.tooMuch("the types of a schema have at most \(limits.fieldsPerSchema) fields")
    }
  }

  private static func tooMuch(_ reason: String) -> ErrorDictionary {
    ErrorDictionary(.badRequest, reason, extension: ErrorExtension(code: .limitExceeded))
  }

  /// Whether all fields can be saved unchanged, as in most records.
  private mutating func areAllPlain(_ fields: [String: FieldValue], type name: String) -> Bool {
    if plainFields[name] == nil, let type = schema[recordType: name] {
      let plain = type.fields.compactMap { field -> (String, FieldType)? in
        guard !field.isSystem, case .typed(let type, false) = field.type,
          // The coordinates of a location may be invalid.
          type != .location, type != .locationList
        else { return nil }
        return (field.name, type)
      }
      plainFields[name] = Dictionary(plain, uniquingKeysWith: { first, _ in first })
    }
    guard let plain = plainFields[name] else { return false }
    return fields.allSatisfy { field, value in
      guard let type = plain[field], !value.isEncrypted else { return false }
      return value.content.type == type
    }
  }

  private mutating func adopt(_ type: RecordTypeSchema) {
    isChanged = true
    plainFields[type.name] = nil
    if let index = schema.recordTypes.firstIndex(where: { $0.name == type.name }) {
      schema.recordTypes[index] = type
    } else {
      schema.recordTypes.append(type)
    }
  }

  private func notPromoted(_ reason: String) -> ErrorDictionary {
    ErrorDictionary(
      .badRequest,
      reason,
      extension: ErrorExtension(
        code: .schemaMismatch,
        remedy: "Import the app's schema into development, or save such a record there, and then "
          + "promote the schema: watershed schema promote --container-id \(container)"
      )
    )
  }

  private func newField(
    _ name: String,
    _ value: FieldValue,
    type: String
  ) throws(ErrorDictionary) -> FieldSchema {
    guard environment == .development else {
      throw notPromoted(
        "Cannot create or modify field '\(name)' in record '\(type)' in production schema"
      )
    }
    guard NameRules.isTypeOrFieldName(name, limits) else {
      throw ErrorDictionary(.badRequest, "invalid field name '\(name)'")
    }
    guard !isEmptyList(value.content) else {
      throw ErrorDictionary(
        .badRequest,
        "cannot use an empty list to initialize a new field '\(name)'"
      )
    }
    guard let inferred = FieldCoercion.inferredType(value.content) else {
      throw ErrorDictionary(.badRequest, "the elements of the list '\(name)' differ in type")
    }
    if value.isEncrypted {
      guard scope != .public else {
        throw ErrorDictionary(
          .badRequest,
          "encrypted fields are not supported in the public database"
        )
      }
      let base = inferred.element ?? inferred
      guard base != .reference, base != .asset else {
        throw ErrorDictionary(.badRequest, "a field of type \(inferred.rawValue) has no encryption")
      }
    }
    let declared = FieldSchemaType.typed(inferred, isEncrypted: value.isEncrypted)
    return FieldSchema(name: name, type: declared, indexes: declared.automaticIndexes)
  }

  private func isEmptyList(_ content: FieldContent) -> Bool {
    guard let type = content.type, type.isList else {
      return content == .unknownList || content == .untagged(.list([]))
    }
    return content == FieldCoercion.emptyList(of: type)
  }

  /// Converts the value to the declared type.
  static func fit(
    _ value: FieldValue,
    to declared: FieldSchema,
    type: String
  ) throws(ErrorDictionary) -> FieldValue {
    if value.content == .null { return value }
    if value.isEncrypted, !declared.type.isEncrypted {
      throw ErrorDictionary(
        .badRequest,
        "Attempt to save encrypted data in non encrypted field type for field '\(declared.name)'",
        extension: ErrorExtension(code: .schemaMismatch)
      )
    }
    let elements = declared.type.elementTypes
    let isList = declared.type.wireType?.isList ?? false
    let types = isList ? elements.compactMap(\.list) : elements
    let fitting = types.lazy.compactMap { FieldCoercion.value(value.content, as: $0) }.first
    guard let fitting, value.isEncrypted == declared.type.isEncrypted else {
      let found =
        (value.isEncrypted ? "ENCRYPTED_" : "")
        + (FieldCoercion.inferredType(value.content)?.rawValue ?? "UNKNOWN_LIST")
      throw ErrorDictionary(
        .badRequest,
        "invalid attempt to set value type \(found) for field '\(declared.name)' for type "
          + "'\(type)', defined to be: \(declared.type.tag)",
        extension: ErrorExtension(code: .schemaMismatch)
      )
    }
    guard fitting.locations.allSatisfy(\.isOnEarth) else {
      throw ErrorDictionary(
        .badRequest,
        "Invalid value, expected type \(declared.type.tag) for field '\(declared.name)': "
          + "a latitude is from -90 to 90, a longitude from -180 to 180"
      )
    }
    return FieldValue(fitting, isEncrypted: value.isEncrypted)
  }
}
