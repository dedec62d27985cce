import CloudKitWebServices
import Effects
import Foundation

/// The users of a container.
package final class UserService: Sendable {
  let storage: any Storage
  let writer: StorageWriter
  private let vault: FieldVault
  private let rates: RequestRates
  private let limits: ServiceLimits
  private let effects: Effects
  /// Whether users who have not chosen are discoverable.
  let discovery: DiscoveryPolicy

  init(
    storage: any Storage,
    writer: StorageWriter,
    vault: FieldVault,
    rates: RequestRates,
    discovery: DiscoveryPolicy,
    limits: ServiceLimits,
    effects: Effects
  ) {
    self.storage = storage
    self.writer = writer
    self.vault = vault
    self.rates = rates
    self.discovery = discovery
    self.limits = limits
    self.effects = effects
  }

  /// The account's user in the container, created at the first sign-in with its `Users` record.
  func user(account: String, container: String) async throws -> StoredUser {
    try await reopen(container)
    let made = StoredUser(
      container: container,
      account: account,
      recordName: vault.userRecordName(account: account, container: container)
    )
    // The user is stored with the last record: a crash before leaves a record that the next sign-in
    // finds, because the name is the same again.
    for environment in ContainerEnvironment.allCases.filter({ $0 != .production }) {
      let known = try await makeUserRecord(made, environment)
      if known != made { return known }
    }
    return try await makeUserRecord(made, .production)
  }

  /// Opens a container that was deleted, so that it has partitions again; throws as long as it is
  /// being deleted.
  private func reopen(_ container: String) async throws {
    guard try storage.read({ try $0.entry(ContainerErasing.key(container)) }) != nil else { return }
    try await writer.write {
      var batch = WriteBatch()
      batch.container = container
      return (batch, ())
    }
  }

  /// Writes a user's record in the public database of an environment, and with that of production
  /// the user; returns the account's user.
  private func makeUserRecord(
    _ made: StoredUser,
    _ environment: ContainerEnvironment
  ) async throws -> StoredUser {
    // An API token may be for all containers: for a name that its bearer made up, no rows are
    // created.
    try storage.read { try self.checkMayJoin(made, $0) }
    let id = try storage.partition(
      PartitionKey(container: made.container, environment: environment, scope: .public, owner: "")
    )
    let now = effects.now.wireMilliseconds
    let tag = String(effects.randomness.next(), radix: 36)
    return try await writer.write(to: id) { [storage] () -> (WriteBatch?, StoredUser) in
      try storage.read { snapshot in
        if let known = try snapshot.user(container: made.container, account: made.account) {
          return (nil, known)
        }
        try self.checkMayJoin(made, snapshot)
        var batch = WriteBatch(partition: id)
        // A concurrent reset of the development environment must include this user.
        let database = try snapshot.database(id)
        batch.expectedCounter = database.counter
        batch.counter = database.counter.next
        let stamp = ServerStamp(
          timestamp: now,
          userRecordName: made.recordName,
          deviceID: RecordStamping.unknownDevice
        )
        let record = StoredRecord(
          key: RecordKey(zone: .defaultZone, name: made.recordName),
          type: RecordTypeSchema.users.name,
          tag: tag,
          change: ChangeNumber(now),
          created: stamp,
          modified: stamp,
          parent: nil,
          fields: Data("{}".utf8),
          contents: [],
          isDeleted: false
        )
        batch.records = [record]
        batch.expectedIndexes = database.indexes
        batch.addedIndexEntries = try snapshot.indexEntries(of: record, [:], in: id)
        if environment == .production {
          batch.container = made.container
          batch.users = [made]
        }
        return (batch, made)
      }
    }
  }

  /// Throws for an account that signs in to one more container than it may.
  private func checkMayJoin(_ made: StoredUser, _ snapshot: any StorageSnapshot) throws {
    // The operator is one account in all containers.
    guard made.account != OperatorIdentity.account,
      try snapshot.user(container: made.container, account: made.account) == nil,
      try snapshot.users(account: made.account).count >= limits.containersPerUser
    else { return }
    throw ErrorDictionary(
      .quotaExceeded,
      "an account signs in to \(limits.containersPerUser) containers at most",
      extension: ErrorExtension(code: .limitExceeded)
    )
  }

  func current(_ context: RequestContext) async throws -> Data {
    let user = try context.user()
    return try WireCoding.encode(try identity(of: user.account, named: user.userRecordName))
  }

  private func identity(of accountID: String, named recordName: String) throws -> UserIdentity {
    let (account, number) = try storage.read {
      (try $0.account(id: accountID), try $0.phoneNumber(ofAccount: accountID))
    }
    return UserIdentity(
      userRecordName: recordName,
      firstName: account?.givenName,
      lastName: account?.familyName,
      nameComponents: NameComponents(
        givenName: account?.givenName,
        familyName: account?.familyName
      ),
      lookupInfo: LookupInfo(emailAddress: account?.emailAddress, phoneNumber: number)
    )
  }

  func discover(
    _ request: DiscoverUsersRequest,
    _ context: RequestContext
  ) async throws
    -> Data
  {
    let user = try context.user()
    guard context.scope == .public else {
      throw ErrorDictionary(
        .badRequest,
        "endpoint not applicable in the database type '\(context.scope.rawValue)db'"
      )
    }
    let found = try find(request.lookupInfos ?? [], context, for: user)
    return try WireCoding.encode(UsersResponse(users: found.map { .success($0) }))
  }

  func lookup(_ request: LookupUsersRequest, _ context: RequestContext) async throws -> Data {
    let user = try context.user()
    let found = try find(request.users, context, for: user)
    return try WireCoding.encode(UsersResponse(users: found.map { .success($0) }))
  }

  /// The server has no address book.
  func lookupContacts(_ context: RequestContext) async throws -> Data {
    _ = try context.user()
    return try WireCoding.encode(UsersResponse(users: [], contacts: []))
  }

  /// The requested users who belong to this container; others are left out.
  ///
  /// A look-up by address or number finds only discoverable users. A look-up by record name finds
  /// every user, because the client has the name from a record or a share; for a user who is not
  /// discoverable the reply contains the record name alone.
  private func find(
    _ infos: [LookupInfo],
    _ context: RequestContext,
    for user: Principal
  ) throws -> [UserIdentity] {
    guard infos.count <= limits.itemsPerRequest else {
      throw ErrorDictionary(.badRequest, "more than \(limits.itemsPerRequest) users")
    }
    try rates.checkLookups(of: infos.count, user)
    return try storage.read { snapshot in
      try infos.compactMap { info in
        var known: StoredUser?
        if let name = info.userRecordName {
          known = try snapshot.user(container: context.container, recordName: name)
        } else if let address = info.emailAddress,
          let account = try snapshot.account(owning: address)
        {
          known = try snapshot.user(container: context.container, account: account.id)
        } else if let number = info.phoneNumber,
          let account = try snapshot.account(phoneNumber: number)
        {
          known = try snapshot.user(container: context.container, account: account)
        }
        guard let known else { return nil }
        let isOpen =
          try known.account == user.account
          || isDiscoverable(known.account, in: context.container, snapshot)
        guard isOpen else {
          guard info.userRecordName != nil else { return nil }
          return UserIdentity(
            userRecordName: known.recordName,
            nameComponents: NameComponents(),
            lookupInfo: info
          )
        }
        let account = try snapshot.account(id: known.account)
        return UserIdentity(
          userRecordName: known.recordName,
          firstName: account?.givenName,
          lastName: account?.familyName,
          emailAddress: info.emailAddress,
          nameComponents: NameComponents(
            givenName: account?.givenName,
            familyName: account?.familyName
          ),
          lookupInfo: info
        )
      }
    }
  }
}
