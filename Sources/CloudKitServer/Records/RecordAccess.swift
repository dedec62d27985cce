import CloudKitWebServices

/// Who may do what with a record: the owner anything in their own database, others by the type's
/// grants in the public one.
struct RecordAccess: Sendable {
  var scope: DatabaseScope
  var schema: DatabaseSchema
  /// Nil: nobody is signed in.
  var user: String?

  func allows(
    _ permission: SchemaGrant.Permission,
    type: String,
    creator: String?
  ) -> Bool {
    guard scope == .public else { return true }
    guard let declared = schema[recordType: type] else { return true }
    return declared.grants.contains { grant in
      guard grant.permissions.contains(permission) else { return false }
      switch grant.role {
      case SchemaGrant.world: return permission == .read || user != nil
      case SchemaGrant.signedIn: return user != nil
      case SchemaGrant.creator: return user != nil && (creator == nil || creator == user)
      default: return false
      }
    }
  }
}

extension CloudKitService {
  func canRead(_ record: StoredRecord, _ context: RequestContext) -> Bool {
    guard context.scope == .public else { return true }
    let schema =
      (try? schema(container: context.container, environment: context.environment))
      ?? DatabaseSchema()
    let access = RecordAccess(
      scope: .public,
      schema: schema,
      user: context.principal?.userRecordName
    )
    return access.allows(.read, type: record.type, creator: record.created.userRecordName)
  }
}
