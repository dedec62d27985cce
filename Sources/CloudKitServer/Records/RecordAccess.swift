import CloudKitWebServices

/// The permissions for a record: all for the owner in their own database, and by the type's grants
/// in the public one.
struct RecordAccess: Sendable {
  var scope: DatabaseScope
  var schema: DatabaseSchema
  /// Nil if no user is signed in.
  var user: String?
  /// The custom roles that the user holds.
  var roles: Set<String> = []

  func allows(
    _ permission: SchemaGrant.Permission,
    type: String,
    creator: Creator
  ) -> Bool {
    guard scope == .public else { return true }
    guard let declared = schema[recordType: type] else {
      // The type is missing because a save is about to declare it with the default grants, or
      // because an import has deleted it and its records are still to be erased.
      guard let user else { return false }
      return permission == .create ? creator == .caller : creator == .user(user)
    }
    return declared.grants.contains { grant in
      guard grant.permissions.contains(permission) else { return false }
      switch grant.role {
      case SchemaGrant.world: return permission == .read || user != nil
      case SchemaGrant.signedIn: return user != nil
      // The user who creates a record is its creator.
      case SchemaGrant.creator:
        guard let user else { return false }
        return creator == .caller || creator == .user(user)
      default: return roles.contains(grant.role)
      }
    }
  }

  /// The creator of an accessed record.
  enum Creator: Hashable {
    /// The caller creates the record.
    case caller
    case user(String)
    /// A user who is not the caller.
    case otherUser

    /// A record whose creator is unknown is not the caller's.
    static func of(_ record: StoredRecord) -> Creator {
      record.created.userRecordName.map(Creator.user) ?? .otherUser
    }
  }

  /// The readers of a type's records.
  enum Readers: Hashable {
    case everyone
    case creator(String)
    case noUser
  }

  func readers(of type: RecordTypeSchema) -> Readers {
    if allows(.read, type: type.name, creator: .otherUser) { return .everyone }
    guard let user, allows(.read, type: type.name, creator: .user(user)) else { return .noUser }
    return .creator(user)
  }
}

extension StorageSnapshot {
  /// The caller's permissions in a database, by the schema in this snapshot.
  func access(in id: PartitionID, _ context: RequestContext) throws -> RecordAccess {
    let stored = try schema(container: context.container, environment: context.environment)
    var access = RecordAccess(
      scope: context.scope,
      schema: stored?.schema ?? DatabaseSchema(),
      user: context.principal?.userRecordName
    )
    if context.scope == .public, let user = access.user, !access.schema.roles.isEmpty {
      access.roles = try roles(of: user, in: id, access.schema)
    }
    return access
  }

  /// The custom roles whose numbers are in a user's own record.
  private func roles(
    of user: String,
    in id: PartitionID,
    _ schema: DatabaseSchema
  ) throws -> Set<String> {
    let key = RecordKey(zone: .defaultZone, name: user)
    guard let record = try records(in: id, keys: [key])[key], !record.isDeleted,
      record.type == RecordTypeSchema.users.name,
      case .int64List(let numbers)? = try record.decodedFields()[RecordTypeSchema.rolesField]?
        .content
    else { return [] }
    return Set(schema.roles.filter { schema.roleNumbers[$0].map(numbers.contains) ?? false })
  }
}

extension Storage {
  func canRead(_ record: StoredRecord, in id: PartitionID, _ context: RequestContext) -> Bool {
    guard context.scope == .public else { return true }
    guard let access = try? read({ try $0.access(in: id, context) }) else { return false }
    return access.allows(.read, type: record.type, creator: .of(record))
  }
}
