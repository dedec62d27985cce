/// The record types and roles of a container's environment.
package struct DatabaseSchema: Codable, Hashable, Sendable {
  package var roles: [String]
  package var recordTypes: [RecordTypeSchema]
  /// The numbers of custom roles in `Users.roles`; a number is never assigned to another role.
  package var roleNumbers: [String: Int64] = [:]

  package init(roles: [String] = [], recordTypes: [RecordTypeSchema] = [.users]) {
    self.roles = roles
    self.recordTypes = recordTypes
  }

  private enum CodingKeys: String, CodingKey { case roles, recordTypes, roleNumbers }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    roles = try container.decode([String].self, forKey: .roles)
    recordTypes = try container.decode([RecordTypeSchema].self, forKey: .recordTypes)
    roleNumbers =
      try container.decodeIfPresent([String: Int64].self, forKey: .roleNumbers) ?? [:]
  }

  package subscript(recordType name: String) -> RecordTypeSchema? {
    recordTypes.first { $0.name == name }
  }
}

/// A record type: its fields, their indexes, and the roles' permissions in the public database.
package struct RecordTypeSchema: Codable, Hashable, Sendable {
  package var name: String
  package var fields: [FieldSchema]
  package var grants: [SchemaGrant]

  package init(name: String, fields: [FieldSchema], grants: [SchemaGrant]) {
    self.name = name
    self.fields = fields
    self.grants = grants
  }

  package subscript(field name: String) -> FieldSchema? {
    fields.first { $0.name == name }
  }

  /// A new type as development creates it: system fields without indexes, the default grants.
  package static func new(_ name: String, fields: [FieldSchema] = []) -> RecordTypeSchema {
    RecordTypeSchema(
      name: name,
      fields: FieldSchema.system + fields,
      grants: [
        SchemaGrant(role: SchemaGrant.creator, permissions: [.write]),
        SchemaGrant(role: SchemaGrant.signedIn, permissions: [.create]),
        SchemaGrant(role: SchemaGrant.world, permissions: [.read]),
      ]
    )
  }

  /// The field of `Users` that holds the numbers of a user's custom roles.
  package static let rolesField = "roles"

  /// The record type that every environment has.
  package static let users = RecordTypeSchema(
    name: "Users",
    fields: FieldSchema.system + [FieldSchema(name: rolesField, type: .typed(.int64List))],
    grants: [
      SchemaGrant(role: SchemaGrant.creator, permissions: [.write]),
      SchemaGrant(role: SchemaGrant.world, permissions: [.read]),
    ]
  )
}

/// A field of a record type.
package struct FieldSchema: Codable, Hashable, Sendable {
  package var name: String
  package var type: FieldSchemaType
  package var indexes: Set<FieldIndex>

  package init(name: String, type: FieldSchemaType, indexes: Set<FieldIndex> = []) {
    self.name = name
    self.type = type
    self.indexes = indexes
  }

  /// The fields that every record has; a schema lists them so that they can be indexed.
  package static let system = [
    FieldSchema(name: "___createTime", type: .typed(.timestamp)),
    FieldSchema(name: "___createdBy", type: .typed(.reference)),
    FieldSchema(name: "___etag", type: .typed(.string)),
    FieldSchema(name: "___modTime", type: .typed(.timestamp)),
    FieldSchema(name: "___modifiedBy", type: .typed(.reference)),
    FieldSchema(name: "___recordID", type: .typed(.reference)),
  ]

  package var isSystem: Bool { name.hasPrefix("___") }

  /// A system field's declaration without an index; nil if there is no such field.
  package static func system(_ name: String) -> FieldSchema? { system.first { $0.name == name } }

  private enum CodingKeys: String, CodingKey { case name, type, indexes }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(name, forKey: .name)
    try container.encode(type, forKey: .type)
    try container.encode(FieldIndex.allCases.filter(indexes.contains), forKey: .indexes)
  }
}

/// The permissions of a role for a type's records in the public database.
package struct SchemaGrant: Codable, Hashable, Sendable {
  package enum Permission: String, Codable, Hashable, Sendable, CaseIterable {
    case read = "READ"
    case create = "CREATE"
    /// Includes deletion.
    case write = "WRITE"
  }

  /// All callers, including anonymous ones; only reading can be granted.
  package static let world = "_world"
  /// All signed-in users.
  package static let signedIn = "_icloud"
  /// The user who created the record.
  package static let creator = "_creator"

  /// The roles that every schema has.
  package static let systemRoles: Set<String> = [world, signedIn, creator]

  package var role: String
  package var permissions: Set<Permission>

  package init(role: String, permissions: Set<Permission>) {
    self.role = role
    self.permissions = permissions
  }

  private enum CodingKeys: String, CodingKey { case role, permissions }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(role, forKey: .role)
    try container.encode(Permission.allCases.filter(permissions.contains), forKey: .permissions)
  }
}
