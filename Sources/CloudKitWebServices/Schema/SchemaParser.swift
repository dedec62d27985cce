/// Parses the schema language.
struct SchemaParser {
  private var lexer: SchemaLexer
  private var token: SchemaLexer.Token

  init(_ text: String) {
    lexer = SchemaLexer(text)
    token = lexer.next()
  }

  mutating func schema() throws(SchemaSyntaxError) -> DatabaseSchema {
    try expect("DEFINE")
    try expect("SCHEMA")
    var schema = DatabaseSchema(recordTypes: [])
    while token.kind != .end {
      if take("CREATE") {
        try expect("ROLE")
        let place = token
        let role = try name()
        guard !schema.roles.contains(role) else {
          throw refusal(at: place, "Duplicate role '\(role)'")
        }
        schema.roles.append(role)
      } else if take("RECORD") {
        try expect("TYPE")
        let place = token
        let type = try recordType()
        guard schema[recordType: type.name] == nil else {
          throw refusal(at: place, "Duplicate record type '\(type.name)'")
        }
        schema.recordTypes.append(type)
      } else {
        throw error("\"CREATE\"", "\"RECORD\"", "<EOF>")
      }
      try expect(punctuation: ";")
    }
    return schema
  }

  private mutating func recordType() throws(SchemaSyntaxError) -> RecordTypeSchema {
    var type = RecordTypeSchema(name: try name(), fields: [], grants: [])
    try expect(punctuation: "(")
    if take(punctuation: ")") { return type }
    repeat {
      if take("GRANT") {
        let grant = try grant()
        if let index = type.grants.firstIndex(where: { $0.role == grant.role }) {
          type.grants[index].permissions.formUnion(grant.permissions)
        } else {
          type.grants.append(grant)
        }
      } else {
        let place = token
        let field = try field()
        guard type[field: field.name] == nil else {
          throw refusal(at: place, "Duplicate field '\(field.name)' in record type '\(type.name)'")
        }
        if let system = FieldSchema.system.first(where: { $0.name == field.name }),
          system.type != field.type
        {
          throw refusal(
            at: place,
            "Invalid type \(field.type.text) for system field '\(field.name)', which is "
              + "\(system.type.text),"
          )
        }
        type.fields.append(field)
      }
    } while take(punctuation: ",")
    try expect(punctuation: ")")
    return type
  }

  private mutating func field() throws(SchemaSyntaxError) -> FieldSchema {
    var field = FieldSchema(name: try name(), type: try type())
    options: while true {
      for index in FieldIndex.allCases where take(index.rawValue) {
        field.indexes.insert(index)
        continue options
      }
      return field
    }
  }

  mutating func type() throws(SchemaSyntaxError) -> FieldSchemaType {
    guard take("LIST") else { return try primitive() }
    try expect(punctuation: "<")
    let place = token
    guard case .typed(let element, let isEncrypted) = try primitive(), let list = element.list
    else { throw refusal(at: place, "Lists of this type are not supported") }
    try expect(punctuation: ">")
    return .typed(list, isEncrypted: isEncrypted)
  }

  private mutating func primitive() throws(SchemaSyntaxError) -> FieldSchemaType {
    if take("NUMBER") {
      guard take("PREFERRED") else { return .number(preferred: nil) }
      try expect("AS")
      if take("INT64") { return .number(preferred: .int64) }
      if take("DOUBLE") { return .number(preferred: .double) }
      throw error("\"INT64\"", "\"DOUBLE\"")
    }
    let isEncrypted = take("ENCRYPTED")
    guard case .word(let word) = token.kind, let scalar = FieldSchemaType.scalar(word),
      !isEncrypted || (scalar != .reference && scalar != .asset)
    else {
      throw expecting(isEncrypted ? Self.encryptedTypes : Self.types)
    }
    advance()
    return .typed(scalar, isEncrypted: isEncrypted)
  }

  private static let encryptedTypes = [
    "BYTES", "STRING", "DOUBLE", "INT64", "LOCATION", "TIMESTAMP",
  ]
  private static let types = [
    "LIST", "ASSET", "BYTES", "DOUBLE", "ENCRYPTED", "INT64", "LOCATION", "NUMBER", "REFERENCE",
    "STRING", "TIMESTAMP",
  ]

  /// Parses the rest of a grant after GRANT: permissions separated by commas, then TO and a role.
  private mutating func grant() throws(SchemaSyntaxError) -> SchemaGrant {
    var permissions: Set<SchemaGrant.Permission> = []
    repeat {
      guard case .word(let word) = token.kind,
        let permission = SchemaGrant.Permission(rawValue: word.uppercased())
      else { throw expecting(SchemaGrant.Permission.allCases.map(\.rawValue)) }
      permissions.insert(permission)
      advance()
    } while take(punctuation: ",")
    try expect("TO")
    return SchemaGrant(role: try name(), permissions: permissions)
  }

  private mutating func name() throws(SchemaSyntaxError) -> String {
    switch token.kind {
    case .word(let name):
      advance()
      return name
    case .quoted(let name) where !name.isEmpty:
      advance()
      return name
    default: throw error("<IDENTIFIER>", "<QUOTED_IDENTIFIER>")
    }
  }

  // MARK: Tokens

  private mutating func advance() {
    token = lexer.next()
  }

  /// Keywords are matched in any case, and only where one is expected.
  private mutating func take(_ keyword: String) -> Bool {
    guard case .word(let word) = token.kind, word.uppercased() == keyword else { return false }
    advance()
    return true
  }

  private mutating func take(punctuation: Character) -> Bool {
    guard token.kind == .punctuation(punctuation) else { return false }
    advance()
    return true
  }

  private mutating func expect(_ keyword: String) throws(SchemaSyntaxError) {
    guard take(keyword) else { throw error("\"\(keyword)\"") }
  }

  private mutating func expect(punctuation: Character) throws(SchemaSyntaxError) {
    guard take(punctuation: punctuation) else { throw error("\"\(punctuation)\"") }
  }

  private func expecting(_ words: [String]) -> SchemaSyntaxError {
    error(words.map { "\"\($0)\"" })
  }

  private func error(_ expected: String...) -> SchemaSyntaxError { error(expected) }

  private func error(_ expected: [String]) -> SchemaSyntaxError {
    if case .invalid(let text) = token.kind {
      return SchemaSyntaxError(
        line: token.line,
        column: token.column,
        problem: .lexical(found: text)
      )
    }
    return SchemaSyntaxError(
      line: token.line,
      column: token.column,
      problem: .unexpected(found: token.text, expected: expected)
    )
  }

  private func refusal(at place: SchemaLexer.Token, _ sentence: String) -> SchemaSyntaxError {
    SchemaSyntaxError(line: place.line, column: place.column, problem: .refused(sentence))
  }
}

extension DatabaseSchema {
  /// Parses the text of a `.ckdb` file.
  package init(ckdb text: String) throws(SchemaSyntaxError) {
    var parser = SchemaParser(text)
    self = try parser.schema()
  }
}
