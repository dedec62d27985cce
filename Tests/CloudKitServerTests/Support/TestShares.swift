import CloudKitServer
import CloudKitWebServices
import Foundation
import Testing

/// Users' actions on shares in tests.
extension Person {
  var userRecordName: String {
    get async throws {
      let identity: UserIdentity = try await call(.caller, [String: String](), in: .public)
      return try #require(identity.userRecordName)
    }
  }

  /// Creates a share: of the zone, or of the tree below a root.
  @discardableResult
  func share(
    _ root: String?,
    _ name: String = "share",
    zone: ZoneID = TestServer.zone,
    publicPermission: ParticipantPermission? = nil,
    with participants: [ShareParticipant]? = nil
  ) async throws -> RecordDictionary {
    let operation = RecordOperation(
      operationType: .create,
      record: RecordDictionary(
        recordName: root == nil ? ShareDictionary.zoneShareName : name,
        recordType: ShareDictionary.recordType,
        fields: ["cloudkit.title": FieldValue(.string("Notes"))],
        sharing: ShareDictionary(
          forRecord: root.map { SharedRootDictionary(recordName: $0) },
          publicPermission: publicPermission,
          participants: participants
        )
      )
    )
    return try await modify([operation], zone: zone)[0].get()
  }

  /// Saves changes to a share.
  @discardableResult
  func updateShare(
    _ share: RecordDictionary,
    publicPermission: ParticipantPermission? = nil,
    participants: [ShareParticipant]? = nil,
    in scope: DatabaseScope = .private,
    zone: ZoneID = TestServer.zone
  ) async throws -> RecordDictionary {
    let operation = RecordOperation(
      operationType: .update,
      record: RecordDictionary(
        recordName: share.recordName,
        recordType: ShareDictionary.recordType,
        recordChangeTag: share.recordChangeTag,
        sharing: ShareDictionary(
          publicPermission: publicPermission,
          participants: participants
        )
      )
    )
    return try await modify([operation], in: scope, zone: zone)[0].get()
  }

  func resolve(
    _ guid: String?,
    _ endpoint: Endpoint = .resolveShares,
    root: Bool = false
  ) async throws -> ShareMetadata {
    let request = ShortGUIDsRequest(shortGUIDs: [
      ShortGUID(value: guid ?? "", shouldFetchRootRecord: root ? true : nil)
    ])
    let reply: ShareMetadataResponse = try await call(endpoint, request, in: .public)
    return try reply.results[0].get()
  }

  @discardableResult
  func accept(_ share: RecordDictionary) async throws -> ShareMetadata {
    try await resolve(share.shortGUID, .acceptShares)
  }

  func sharedChanges(
    since token: String? = nil,
    limit: Int? = nil
  ) async throws
    -> DatabaseChangesResponse
  {
    try await databaseChanges(since: token, limit: limit, in: .shared)
  }

  func feed(
    _ zone: ZoneID,
    since token: String? = nil,
    limit: Int? = nil,
    reverse: Bool? = nil
  ) async throws -> ZoneChanges {
    try await changes(since: token, limit: limit, reverse: reverse, zone: zone, in: .shared)
  }
}

extension ShareParticipant {
  /// A participant invited by the address that test accounts have.
  static func invited(
    _ name: String,
    _ permission: ParticipantPermission = .readWrite
  ) -> ShareParticipant {
    ShareParticipant(
      type: .user,
      acceptanceStatus: .invited,
      permission: permission,
      userIdentity: UserIdentity(
        lookupInfo: LookupInfo(emailAddress: "\(name)@example.com")
      )
    )
  }
}

extension ZoneID {
  /// The zone with its owner, as participants name it.
  func owned(by person: Person) async throws -> ZoneID {
    ZoneID(zoneName: zoneName, ownerRecordName: try await person.userRecordName)
  }
}

/// A shared tree: root above a and b, and c beside it.
struct SharedTree {
  let server: TestServer
  let owner: Person
  let guest: Person
  let zone: ZoneID
  let share: RecordDictionary

  init(
    _ permission: ParticipantPermission = .readWrite,
    accepts: Bool = true,
    limits: (inout ServiceLimits) -> Void = { _ in }
  ) async throws {
    server = try await TestServer(limits: limits)
    owner = try await server.person("ada")
    guest = try await server.person("bob")
    zone = try await TestServer.zone.owned(by: owner)
    try await owner.makeZone()
    _ = try await owner.modify([
      .make(.create, "root", ["title": .string("Root")]), .make(.create, "a", parent: "root"),
      .make(.create, "b", parent: "a"), .make(.create, "c"),
    ])
    share = try await owner.share("root", with: [.invited("bob", permission)])
    if accepts { try await guest.accept(share) }
  }

  func sharedNames() async throws -> [String] { try await guest.feed(zone).names.sorted() }
}
