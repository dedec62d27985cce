import CloudKitWebServices
import Effects
import Foundation
import Testing

@testable import CloudKitServer

/// A clock that a test advances; sleeping tasks never wake.
final class StoppedClock: EffectClock, @unchecked Sendable {
  // Unchecked: `lock` guards the date.
  private let lock = NSLock()
  private var date = Date(timeIntervalSince1970: 1_700_000_000)

  var now: Date { lock.withLock { date } }
  var uptime: Double { now.timeIntervalSince1970 }

  func advance(seconds: Double) { lock.withLock { date += seconds } }

  func sleep(seconds: Double) async throws {
    // Only cancellation ends it.
    let (stream, _) = AsyncStream<Void>.makeStream()
    for await _ in stream {}
    try Task.checkCancellation()
  }
}

/// A server in memory or in a folder, and one container on it.
struct TestServer {
  static let container = "iCloud.example"
  static let zone = ZoneID(zoneName: "notes")

  let service: CloudKitService
  let clock: StoppedClock
  let apiToken: String

  init(
    folder: URL? = nil,
    database: String? = nil,
    seed: UInt64 = 1,
    clock: StoppedClock = StoppedClock(),
    isLenient: Bool = false,
    limits change: (inout ServiceLimits) -> Void = { _ in },
    registration: RegistrationPolicy = .invitation,
    discovery: DiscoveryPolicy = .everyone,
    baseURL: String = "http://127.0.0.1:8080",
    allowedHosts: [String] = [],
    administratorToken: String? = nil,
    ownContainer: String? = nil,
    assetStore: (any AssetStore)? = nil,
    mailSender: (any MailSender)? = nil,
    storage: (@Sendable (any Storage) -> any Storage)? = nil,
    onCommit: (@Sendable (CommitEvent) -> Void)? = nil
  ) async throws {
    var limits = ServiceLimits()
    limits.passwordRounds = 2
    limits.passwordRule = .any
    change(&limits)
    let effects = Effects(
      clock: clock,
      randomness: SeededRandomness(seed: seed),
      tasks: PoolTaskSpawner()
    )
    var configuration = ServiceConfiguration(
      dataFolder: folder,
      database: try database ?? TestEngine.databaseURL(for: folder),
      baseURL: baseURL,
      limits: limits,
      effects: effects,
      allowsUnindexedQueriesInDevelopment: isLenient,
      registration: registration,
      mailSender: mailSender,
      administratorToken: administratorToken,
      allowedHosts: allowedHosts,
      assetStore: assetStore,
      onCommit: onCommit
    )
    configuration.discovery = discovery
    configuration.ownContainer = ownContainer
    let opened = try configuration.openStorage()
    service = try CloudKitService(configuration, storage: storage?(opened) ?? opened)
    let made = service
    if TestEngine.current == .postgreSQL {
      TestEngine.lease.services.withLock { $0.append(made) }
    }
    self.clock = clock
    apiToken = try await service.bootstrapAPIToken()
  }

  /// Creates an account unless it exists, and signs in.
  func person(_ name: String = "ada") async throws -> Person {
    if try !service.accounts.has(named: name) {
      try await service.createAccount(
        userName: name,
        password: "secret",
        givenName: name.capitalized,
        familyName: "Example",
        emailAddress: "\(name)@example.com"
      )
    }
    let token = try await service.signIn(userName: name, container: Self.container)
    return Person(server: self, webAuthToken: token)
  }

  /// A client without a user.
  var visitor: Person { Person(server: self, webAuthToken: nil) }

  func send(_ method: String, _ path: String, body: Data = Data()) async -> WebServiceResponse {
    await service.respond(to: WebServiceRequest(method: method, path: path, body: body))
  }
}

/// A user or client who sends requests, on one device.
struct Person {
  var server: TestServer
  var webAuthToken: String?
  var isExtended = false
  var clientID: String?
  var apiToken: String?
  /// The token of a public share.
  var publicAccessToken: String?
  var environment = ContainerEnvironment.development
  var origin: String?

  var extended: Person {
    var person = self
    person.isExtended = true
    return person
  }

  func on(_ device: String) -> Person {
    var person = self
    person.clientID = device
    return person
  }

  func path(_ endpoint: Endpoint, _ scope: DatabaseScope?) -> String {
    var items = [(name: WebServiceName.apiToken, value: apiToken ?? server.apiToken)]
    if let webAuthToken { items.append((WebServiceName.webAuthToken, webAuthToken)) }
    if let publicAccessToken { items.append((WebServiceName.publicAccessToken, publicAccessToken)) }
    if let clientID { items.append(("clientId", clientID)) }
    return WebServicePath(
      container: TestServer.container,
      environment: environment,
      database: scope,
      endpoint: endpoint
    ).text(items: items)
  }

  func send(
    _ endpoint: Endpoint,
    _ body: Data,
    in scope: DatabaseScope? = .private,
    method: String = "POST"
  ) async -> WebServiceResponse {
    var headers: [String: String] = [:]
    if isExtended { headers[WebServiceName.capabilities] = WebServiceName.capabilitiesValue }
    if let origin { headers["origin"] = origin }
    return await server.service.respond(
      to: WebServiceRequest(
        method: method,
        path: path(endpoint, scope),
        headers: headers,
        body: body
      )
    )
  }

  /// Sends and decodes; throws an error dictionary.
  func call<Reply: Decodable>(
    _ endpoint: Endpoint,
    _ request: some Encodable,
    in scope: DatabaseScope? = .private,
    as type: Reply.Type = Reply.self
  ) async throws -> Reply {
    let response = await send(endpoint, try WireCoding.encode(request), in: scope)
    guard response.status == 200 else {
      let error = try WireCoding.decode(ErrorDictionary.self, from: response.body)
      #expect(error.serverErrorCode.httpStatus == response.status)
      #expect(error.uuid == response.headers["x-apple-request-uuid"])
      throw error
    }
    return try WireCoding.decode(type, from: response.body)
  }

  /// Sends and expects the whole request to fail.
  func failure(
    _ endpoint: Endpoint,
    _ request: some Encodable,
    in scope: DatabaseScope? = .private
  ) async throws -> ErrorDictionary {
    let response = await send(endpoint, try WireCoding.encode(request), in: scope)
    #expect(response.status != 200)
    return try WireCoding.decode(ErrorDictionary.self, from: response.body)
  }

  // MARK: Zones and records

  func makeZone(_ name: String = TestServer.zone.zoneName) async throws {
    let reply: ZonesResponse = try await call(
      .modifyZones,
      ModifyZonesRequest(operations: [
        ZoneOperation(
          operationType: .create,
          zone: ZoneDictionary(zoneID: ZoneID(zoneName: name))
        )
      ])
    )
    _ = try reply.zones[0].get()
  }

  func deleteZone(_ name: String = TestServer.zone.zoneName) async throws {
    let reply: ZonesResponse = try await call(
      .modifyZones,
      ModifyZonesRequest(operations: [
        ZoneOperation(
          operationType: .delete,
          zone: ZoneDictionary(zoneID: ZoneID(zoneName: name))
        )
      ])
    )
    _ = try reply.zones[0].get()
  }

  func modify(
    _ operations: [RecordOperation],
    in scope: DatabaseScope = .private,
    zone: ZoneID? = TestServer.zone,
    atomic: Bool? = nil,
    sequence: ClientSequence? = nil
  ) async throws -> [ItemResult<RecordDictionary>] {
    let request = ModifyRecordsRequest(
      operations: operations,
      zoneID: zone,
      atomic: atomic,
      clientSequence: sequence
    )
    return try await call(.modifyRecords, request, in: scope, as: RecordsResponse.self).records
  }

  /// Sends one operation; throws an item's error.
  @discardableResult
  func save(
    _ type: RecordOperationType = .create,
    _ name: String?,
    _ fields: [String: FieldContent] = [:],
    tag: String? = nil,
    recordType: String? = "Note",
    in scope: DatabaseScope = .private,
    zone: ZoneID? = TestServer.zone
  ) async throws -> RecordDictionary {
    let operation = RecordOperation.make(type, name, fields, tag: tag, recordType: recordType)
    return try await modify([operation], in: scope, zone: zone)[0].get()
  }

  func lookup(
    _ name: String,
    in scope: DatabaseScope = .private,
    zone: ZoneID? = TestServer.zone
  ) async throws -> RecordDictionary {
    let reply: RecordsResponse = try await call(
      .lookupRecords,
      LookupRecordsRequest(records: [LookupRecord(recordName: name)], zoneID: zone),
      in: scope
    )
    return try reply.records[0].get()
  }

  func changes(
    since token: String? = nil,
    limit: Int? = nil,
    reverse: Bool? = nil,
    zone: ZoneID = TestServer.zone,
    in scope: DatabaseScope = .private
  ) async throws -> ZoneChanges {
    let reply: ZoneChangesResponse = try await call(
      .zoneChanges,
      ZoneChangesRequest(zones: [
        ZoneChangesOptions(
          zoneID: zone,
          syncToken: token,
          feed: FeedOptions(resultsLimit: limit, reverse: reverse)
        )
      ]),
      in: scope
    )
    return try reply.zones[0].get()
  }

  func databaseChanges(
    since token: String? = nil,
    limit: Int? = nil,
    in scope: DatabaseScope = .private
  ) async throws -> DatabaseChangesResponse {
    try await call(
      .databaseChanges,
      DatabaseChangesRequest(syncToken: token, resultsLimit: limit),
      in: scope
    )
  }

  func query(
    _ query: RecordQuery,
    in scope: DatabaseScope = .private,
    zone: ZoneID? = TestServer.zone,
    limit: Int? = nil,
    marker: String? = nil
  ) async throws -> QueryRecordsResponse {
    try await call(
      .queryRecords,
      QueryRecordsRequest(
        query: query,
        zoneID: zone,
        resultsLimit: limit,
        continuationMarker: marker
      ),
      in: scope
    )
  }
}

extension RecordOperation {
  static func make(
    _ type: RecordOperationType,
    _ name: String?,
    _ fields: [String: FieldContent] = [:],
    tag: String? = nil,
    recordType: String? = "Note",
    parent: String? = nil
  ) -> RecordOperation {
    RecordOperation(
      operationType: type,
      record: RecordDictionary(
        recordName: name,
        recordType: recordType,
        recordChangeTag: tag,
        fields: fields.mapValues { FieldValue($0) },
        parent: parent.map { ParentDictionary(recordName: $0) }
      )
    )
  }
}

extension RecordDictionary {
  func content(_ name: String) -> FieldContent? { fields?[name]?.content }
}

extension QueryRecordsResponse {
  var names: [String] { records.compactMap { $0.item?.recordName } }
}

extension ZoneChanges {
  var names: [String] { records.compactMap { $0.item?.recordName } }
}

/// A folder that is removed after the test.
func withTemporaryFolder<Result>(
  _ body: (URL) async throws -> Result
) async throws -> Result {
  let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
    "watershed-tests-\(UUID().uuidString)"
  )
  defer { try? FileManager.default.removeItem(at: folder) }
  return try await body(folder)
}
