import CloudKitWebServices
import Effects
import Foundation

extension CKContainer {
  // MARK: Links

  /// The metadata of the share that a link identifies.
  public func shareMetadata(for url: URL) async throws -> CKShare.Metadata {
    guard let result = try await shareMetadatas(for: [url])[url] else {
      throw CKError(.unknownItem, "No share was found for the link.")
    }
    return try result.get()
  }

  /// The metadata of the shares that links identify; each link has a result of its own.
  public func shareMetadatas(
    for urls: [URL]
  ) async throws -> [URL: Result<CKShare.Metadata, any Error>] {
    try await shareMetadatas(for: urls, fetchesRoot: false, rootKeys: nil)
      .mapValues { $0.mapError { $0 as any Error } }
  }

  func shareMetadatas(
    for urls: [URL],
    fetchesRoot: Bool,
    rootKeys: [CKRecord.FieldKey]?
  ) async throws(CKError) -> [URL: Result<CKShare.Metadata, CKError>] {
    var results: [URL: Result<CKShare.Metadata, CKError>] = [:]
    var wanted: [(url: URL, guid: ShortGUID)] = []
    for url in urls {
      switch Self.shortGUID(of: url) {
      case .failure(let error): results[url] = .failure(error)
      case .success(let name):
        let guid = ShortGUID(
          value: name,
          shouldFetchRootRecord: fetchesRoot ? true : nil,
          rootRecordDesiredKeys: rootKeys
        )
        wanted.append((url, guid))
      }
    }
    for slice in CKDatabase.slices(wanted, of: RecordModification.operationLimit) {
      let found = try await askAboutShares(.resolveShares, slice.map(\.guid), repeatable: true)
      for (item, result) in zip(slice, found) { results[item.url] = result }
    }
    return results
  }

  // MARK: Accepting

  /// Accepts an invitation: the shared records are in the shared database afterwards.
  public func accept(_ metadata: CKShare.Metadata) async throws -> CKShare {
    guard let result = try await accept([metadata])[metadata] else {
      throw CKError(.internalError, "The service did not answer the invitation.")
    }
    return try result.get()
  }

  /// Accepts invitations; each has a result of its own.
  public func accept(
    _ metadatas: [CKShare.Metadata]
  ) async throws -> [CKShare.Metadata: Result<CKShare, any Error>] {
    var results: [CKShare.Metadata: Result<CKShare, any Error>] = [:]
    for slice in CKDatabase.slices(metadatas, of: RecordModification.operationLimit) {
      // Accepting a share again succeeds, so the request can be repeated.
      let accepted = try await askAboutShares(
        .acceptShares,
        slice.map { ShortGUID(value: $0.shortGUID) },
        repeatable: true
      )
      for (metadata, result) in zip(slice, accepted) {
        results[metadata] = result.map(\.share).mapError { $0 as any Error }
      }
    }
    return results
  }

  private func askAboutShares(
    _ endpoint: Endpoint,
    _ guids: [ShortGUID],
    repeatable: Bool
  ) async throws(CKError) -> [Result<CKShare.Metadata, CKError>] {
    guard !guids.isEmpty else { return [] }
    let reply = try await client().call(
      endpoint,
      scope: .public,
      body: ShortGUIDsRequest(shortGUIDs: guids),
      repeatable: repeatable,
      as: ShareMetadataResponse.self
    )
    guard reply.results.count == guids.count else {
      throw CKError(
        .internalError,
        "The service answered \(reply.results.count) of \(guids.count) links."
      )
    }
    let origin = try client().configuration.shareOrigin
    return reply.results.map { item in
      switch item {
      case .success(let wire):
        // The user's own share is in the private database, with the user as the owner of its zone.
        let scope: CKDatabase.Scope = wire.databaseScope == "PRIVATE" ? .private : .shared
        let mapping = WireMapping(scope: scope, effects: effects, shareOrigin: origin)
        do throws(CKError) {
          return .success(try CKShare.Metadata(wire: wire, mapping: mapping))
        } catch {
          return .failure(error)
        }
      case .failure(let error):
        let mapping = WireMapping(scope: .shared, effects: effects)
        return .failure(CKError(error, mapping: mapping, zone: .default))
      }
    }
  }

  // MARK: Participants

  /// A participant to add to a share, found by an email address.
  public func shareParticipant(
    forEmailAddress emailAddress: String
  ) async throws -> CKShare.Participant {
    try await shareParticipant(CKUserIdentity.LookupInfo(emailAddress: emailAddress))
  }

  /// A participant to add to a share, found by a phone number.
  public func shareParticipant(
    forPhoneNumber phoneNumber: String
  ) async throws -> CKShare.Participant {
    try await shareParticipant(CKUserIdentity.LookupInfo(phoneNumber: phoneNumber))
  }

  /// A participant to add to a share, found by their user record.
  public func shareParticipant(
    forUserRecordID userRecordID: CKRecord.ID
  ) async throws -> CKShare.Participant {
    try await shareParticipant(CKUserIdentity.LookupInfo(userRecordID: userRecordID))
  }

  private func shareParticipant(
    _ info: CKUserIdentity.LookupInfo
  ) async throws -> CKShare.Participant {
    guard let result = try await shareParticipants(for: [info])[info] else {
      throw CKError(.unknownItem, "No user was found.")
    }
    return try result.get()
  }

  /// Participants to add to a share; each look-up has a result of its own.
  ///
  /// A person without an account can be invited by email address or phone number: they become a
  /// participant once they have one. A user record that does not exist is an `unknownItem`.
  public func shareParticipants(
    for lookupInfos: [CKUserIdentity.LookupInfo]
  ) async throws -> [CKUserIdentity.LookupInfo: Result<CKShare.Participant, any Error>] {
    let found = try await discover(lookupInfos)
    var results: [CKUserIdentity.LookupInfo: Result<CKShare.Participant, any Error>] = [:]
    for info in lookupInfos {
      if found[info] == nil, info.userRecordID != nil {
        results[info] = .failure(CKError(.unknownItem, "No user was found for the user record."))
        continue
      }
      results[info] = .success(
        CKShare.Participant(
          identity: found[info] ?? CKUserIdentity(lookupInfo: info),
          participantID: effects.uuid().uuidString
        )
      )
    }
    return results
  }

  private func participants<Key: Hashable>(
    _ keys: [Key],
    _ info: (Key) -> CKUserIdentity.LookupInfo
  ) async throws -> [Key: Result<CKShare.Participant, any Error>] {
    let found = try await shareParticipants(for: keys.map(info))
    var results: [Key: Result<CKShare.Participant, any Error>] = [:]
    for key in keys { results[key] = found[info(key)] }
    return results
  }

  /// Participants to add to a share, found by email addresses.
  public func shareParticipants(
    forEmailAddresses emails: [String]
  ) async throws -> [String: Result<CKShare.Participant, any Error>] {
    try await participants(emails) { CKUserIdentity.LookupInfo(emailAddress: $0) }
  }

  /// Participants to add to a share, found by phone numbers.
  public func shareParticipants(
    forPhoneNumbers phoneNumbers: [String]
  ) async throws -> [String: Result<CKShare.Participant, any Error>] {
    try await participants(phoneNumbers) { CKUserIdentity.LookupInfo(phoneNumber: $0) }
  }

  /// Participants to add to a share, found by their user records.
  public func shareParticipants(
    forUserRecordIDs userRecordIDs: [CKRecord.ID]
  ) async throws -> [CKRecord.ID: Result<CKShare.Participant, any Error>] {
    try await participants(userRecordIDs) { CKUserIdentity.LookupInfo(userRecordID: $0) }
  }

  // MARK: Access requests

  /// Asks the owners of shares for access; each link has a result of its own.
  ///
  /// Success says that the service accepted the request, not that the share exists or that its
  /// owner allows requests: see `CKShare.allowsAccessRequests`. A requester who is approved can
  /// then fetch the share's metadata and accept it.
  ///
  /// **Differs from CloudKit:** Apple's web services have no such request, so against them each
  /// link fails with `permissionFailure`.
  public func requestShareAccess(
    for urls: [URL]
  ) async throws -> [URL: Result<Void, any Error>] {
    var results: [URL: Result<Void, any Error>] = [:]
    var wanted: [(url: URL, guid: ShortGUID)] = []
    for url in urls {
      switch Self.shortGUID(of: url) {
      case .success(let guid): wanted.append((url, ShortGUID(value: guid)))
      case .failure(let error): results[url] = .failure(error)
      }
    }
    for slice in CKDatabase.slices(wanted, of: RecordModification.operationLimit) {
      let answers = try await askForAccess(slice.map(\.guid))
      for (item, answer) in zip(slice, answers) { results[item.url] = answer }
    }
    return results
  }

  private func askForAccess(
    _ guids: [ShortGUID]
  ) async throws(CKError) -> [Result<Void, any Error>] {
    let reply: AccessRequestsResponse
    do {
      reply = try await client().call(
        .requestAccess,
        scope: .public,
        body: ShortGUIDsRequest(shortGUIDs: guids),
        // A repeated access request has no further effect.
        repeatable: true,
        as: AccessRequestsResponse.self
      )
    } catch  where error.code == .unknownItem {
      let refusal = CKError(
        .permissionFailure,
        "The service knows no requests to take part in a share.",
        remedy: "Ask the owner to invite you.",
        underlying: error
      )
      return guids.map { _ in .failure(refusal) }
    }
    guard reply.results.count == guids.count else {
      throw CKError(
        .internalError,
        "The service answered \(reply.results.count) of \(guids.count) links."
      )
    }
    let mapping = WireMapping(scope: .shared, effects: effects)
    return reply.results.map { item in
      guard let error = item.error else { return .success(()) }
      return .failure(CKError(error, mapping: mapping, zone: .default))
    }
  }

  private static func shortGUID(of url: URL) -> Result<String, CKError> {
    CKShare.shortGUID(of: url).map { .success($0) }
      ?? .failure(CKError(.invalidArguments, "\(url.host ?? "") is not the address of a share."))
  }
}
