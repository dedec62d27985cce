import CloudKitWebServices
import Foundation

// User discovery. Apple has deprecated these methods in favour of sharing; they still work.
extension CKContainer {
  /// Looks users up, and returns the identity for each look-up that found a user.
  package func discover(
    _ infos: [CKUserIdentity.LookupInfo]
  ) async throws(CKError) -> [CKUserIdentity.LookupInfo: CKUserIdentity] {
    var found: [CKUserIdentity.LookupInfo: CKUserIdentity] = [:]
    let client = try client()
    for slice in CKDatabase.slices(infos, of: RecordModification.operationLimit) {
      let reply = try await client.call(
        .discoverUsers,
        scope: .public,
        body: DiscoverUsersRequest(lookupInfos: slice.map(\.wire)),
        repeatable: true,
        as: UsersResponse.self
      )
      let people = reply.users.compactMap(\.item)
      for info in slice {
        // The reply omits users who were not found, or has errors for them: its order is not the
        // request's.
        guard let person = people.first(where: { Self.person($0, isMeantBy: info) }) else {
          continue
        }
        found[info] = Self.identity(person, foundBy: info)
      }
    }
    return found
  }

  private static func person(
    _ person: UserIdentity,
    isMeantBy info: CKUserIdentity.LookupInfo
  ) -> Bool {
    if let recordID = info.userRecordID { return person.userRecordName == recordID.recordName }
    if let wire = person.lookupInfo.flatMap(CKUserIdentity.LookupInfo.init(wire:)),
      info.finds(wire)
    {
      return true
    }
    guard let email = info.emailAddress else { return false }
    return person.emailAddress?.lowercased() == email.lowercased()
  }

  private static func identity(
    _ person: UserIdentity,
    foundBy info: CKUserIdentity.LookupInfo
  ) -> CKUserIdentity {
    let identity = CKUserIdentity(wire: person)
    return CKUserIdentity(
      userRecordID: identity.userRecordID,
      lookupInfo: info,
      nameComponents: identity.nameComponents,
      hasiCloudAccount: identity.hasiCloudAccount
    )
  }

  private func identities<Key: Hashable>(
    _ keys: [Key],
    _ info: (Key) -> CKUserIdentity.LookupInfo
  ) async throws -> [Key: CKUserIdentity] {
    let found = try await discover(keys.map(info))
    var identities: [Key: CKUserIdentity] = [:]
    for key in keys { identities[key] = found[info(key)] }
    return identities
  }

  // MARK: Asynchronous

  /// The user of an email address, or nil if none can be found.
  @available(*, deprecated, message: "Fetch share participants instead")
  public func userIdentity(forEmailAddress email: String) async throws -> CKUserIdentity? {
    try await identities([email], CKUserIdentity.LookupInfo.init(emailAddress:))[email]
  }

  /// The user of a phone number, or nil if none can be found.
  @available(*, deprecated, message: "Fetch share participants instead")
  public func userIdentity(forPhoneNumber phoneNumber: String) async throws -> CKUserIdentity? {
    try await identities([phoneNumber], CKUserIdentity.LookupInfo.init(phoneNumber:))[phoneNumber]
  }

  /// The user of a user record, or nil if none can be found.
  @available(*, deprecated, message: "Fetch share participants instead")
  public func userIdentity(
    forUserRecordID userRecordID: CKRecord.ID
  ) async throws -> CKUserIdentity? {
    try await identities([userRecordID], CKUserIdentity.LookupInfo.init(userRecordID:))[
      userRecordID
    ]
  }

  /// The users of email addresses, as far as they can be found.
  @available(*, deprecated, message: "Fetch share participants instead")
  public func userIdentities(
    forEmailAddresses emails: [String]
  ) async throws -> [String: CKUserIdentity] {
    try await identities(emails, CKUserIdentity.LookupInfo.init(emailAddress:))
  }

  /// The users of phone numbers, as far as they can be found.
  @available(*, deprecated, message: "Fetch share participants instead")
  public func userIdentities(
    forPhoneNumbers phoneNumbers: [String]
  ) async throws -> [String: CKUserIdentity] {
    try await identities(phoneNumbers, CKUserIdentity.LookupInfo.init(phoneNumber:))
  }

  /// The users of user records, as far as they can be found.
  @available(*, deprecated, message: "Fetch share participants instead")
  public func userIdentities(
    forUserRecordIDs userRecordIDs: [CKRecord.ID]
  ) async throws -> [CKRecord.ID: CKUserIdentity] {
    try await identities(userRecordIDs, CKUserIdentity.LookupInfo.init(userRecordID:))
  }

  // MARK: With completion handlers

  private func one(
    _ info: CKUserIdentity.LookupInfo,
    _ completionHandler: @escaping @Sendable (CKUserIdentity?, (any Error)?) -> Void
  ) {
    complete(completionHandler) { try await $0.discover([info])[info] }
  }

  private func several<Key: Hashable & Sendable>(
    _ keys: [Key],
    _ info: @escaping @Sendable (Key) -> CKUserIdentity.LookupInfo,
    _ completionHandler: @escaping @Sendable (Result<[Key: CKUserIdentity], any Error>) -> Void
  ) {
    complete(result: completionHandler) { try await $0.identities(keys, info) }
  }

  /// Fetches the user of an email address.
  @available(*, deprecated, message: "Fetch share participants instead")
  public func discoverUserIdentity(
    withEmailAddress email: String,
    completionHandler: @escaping @Sendable (CKUserIdentity?, (any Error)?) -> Void
  ) {
    one(CKUserIdentity.LookupInfo(emailAddress: email), completionHandler)
  }

  /// Fetches the user of a phone number.
  @available(*, deprecated, message: "Fetch share participants instead")
  public func discoverUserIdentity(
    withPhoneNumber phoneNumber: String,
    completionHandler: @escaping @Sendable (CKUserIdentity?, (any Error)?) -> Void
  ) {
    one(CKUserIdentity.LookupInfo(phoneNumber: phoneNumber), completionHandler)
  }

  /// Fetches the user of a user record.
  @available(*, deprecated, message: "Fetch share participants instead")
  public func discoverUserIdentity(
    withUserRecordID userRecordID: CKRecord.ID,
    completionHandler: @escaping @Sendable (CKUserIdentity?, (any Error)?) -> Void
  ) {
    one(CKUserIdentity.LookupInfo(userRecordID: userRecordID), completionHandler)
  }

  /// Fetches the users of email addresses.
  @available(*, deprecated, message: "Fetch share participants instead")
  public func discoverUserIdentities(
    forEmailAddresses emails: [String],
    completionHandler: @escaping @Sendable (Result<[String: CKUserIdentity], any Error>) -> Void
  ) {
    several(emails, { CKUserIdentity.LookupInfo(emailAddress: $0) }, completionHandler)
  }

  /// Fetches the users of phone numbers.
  @available(*, deprecated, message: "Fetch share participants instead")
  public func discoverUserIdentities(
    forPhoneNumbers phoneNumbers: [String],
    completionHandler: @escaping @Sendable (Result<[String: CKUserIdentity], any Error>) -> Void
  ) {
    several(phoneNumbers, { CKUserIdentity.LookupInfo(phoneNumber: $0) }, completionHandler)
  }

  /// Fetches the users of user records.
  @available(*, deprecated, message: "Fetch share participants instead")
  public func discoverUserIdentities(
    forUserRecordIDs userRecordIDs: [CKRecord.ID],
    completionHandler:
      @escaping @Sendable (Result<[CKRecord.ID: CKUserIdentity], any Error>) -> Void
  ) {
    several(userRecordIDs, { CKUserIdentity.LookupInfo(userRecordID: $0) }, completionHandler)
  }
}
