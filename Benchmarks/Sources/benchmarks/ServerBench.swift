import CloudKitServer
import CloudKitWebServices
import Foundation
import WatershedSQLite

/// A service without sockets, and users who each write to their own database.
struct ServerBench {
  let service: CloudKitService
  let people: [Person]
  static let container = "iCloud.org.example.benchmark"
  static let zone = ZoneID(zoneName: "notes")
  static let fieldNames = (0..<8).map { "field\($0)" }
  static let batchSize = 200

  struct Person: Sendable {
    let service: CloudKitService
    let apiToken: String
    let webAuthToken: String
    let number: Int

    func send(_ endpoint: Endpoint, _ body: Data) async throws -> Data {
      let path = WebServicePath(
        container: ServerBench.container,
        environment: .development,
        database: endpoint == .createToken ? nil : .private,
        endpoint: endpoint
      ).text(items: [
        (name: WebServiceName.apiToken, value: apiToken),
        (name: WebServiceName.webAuthToken, value: webAuthToken),
      ])
      let response = await service.respond(
        to: WebServiceRequest(method: "POST", path: path, headers: [:], body: body)
      )
      guard response.status == 200 else {
        throw Refused(body: String(decoding: response.body, as: UTF8.self))
      }
      return response.body
    }

    func send(_ endpoint: Endpoint, _ request: some Encodable) async throws -> Data {
      try await send(endpoint, try WireCoding.encode(request))
    }
  }

  struct Refused: Error { var body: String }

  init(_ room: BenchRoom, people count: Int, indexes: Int) async throws {
    var limits = ServiceLimits()
    // Password hashing is not measured.
    limits.passwordRounds = 1024
    limits.passwordRule = .any
    let service = try CloudKitService(
      ServiceConfiguration(dataFolder: room.folder, database: room.database, limits: limits)
    )
    let apiToken = try await service.bootstrapAPIToken()
    var people: [Person] = []
    for number in 0..<count {
      let name = "person\(number)"
      try await service.createAccount(userName: name, password: "benchmark")
      people.append(
        Person(
          service: service,
          apiToken: apiToken,
          webAuthToken: try await service.signIn(userName: name, container: Self.container),
          number: number
        )
      )
    }
    self.service = service
    self.people = people
    for person in people {
      _ = try await person.send(
        .modifyZones,
        ModifyZonesRequest(operations: [
          ZoneOperation(operationType: .create, zone: ZoneDictionary(zoneID: Self.zone))
        ])
      )
      // The first record creates the schema, and the first query that needs an index creates it.
      _ = try await person.send(.modifyRecords, try Self.batch(person: person.number, -1, 1))
      for field in Self.fieldNames.prefix(indexes) {
        _ = try await person.send(.queryRecords, Self.query(field, equals: "none"))
      }
    }
  }

  static func query(_ field: String, equals text: String) -> QueryRecordsRequest {
    QueryRecordsRequest(
      query: RecordQuery(
        recordType: "Note",
        filterBy: [
          QueryFilter(
            comparator: .equals,
            fieldName: field,
            fieldValue: FieldValue(.string(text))
          )
        ]
      ),
      zoneID: zone
    )
  }

  /// The bytes of a request that creates records with random names and about 300 bytes of fields.
  static func batch(person: Int, _ number: Int, _ count: Int = batchSize) throws -> Data {
    let operations = (0..<count).map { index in
      let seed = seed(person: person, batch: number, index: index)
      let fields = fieldNames.enumerated().map { offset, name in
        (name, FieldValue(.string(word(seed &+ UInt64(offset) << 56) + word(seed))))
      }
      return RecordOperation(
        operationType: .create,
        record: RecordDictionary(
          recordName: name(seed),
          recordType: "Note",
          fields: Dictionary(uniqueKeysWithValues: fields)
        )
      )
    }
    return try WireCoding.encode(ModifyRecordsRequest(operations: operations, zoneID: zone))
  }

  static func seed(person: Int, batch: Int, index: Int) -> UInt64 {
    UInt64(bitPattern: Int64(person << 40 ^ batch << 12 ^ index))
  }

  static func name(_ seed: UInt64) -> String { "R" + word(seed) + word(~seed) }

  /// Sixteen digits from a step of splitmix64.
  private static func word(_ seed: UInt64) -> String {
    var word = seed &+ 0x9E37_79B9_7F4A_7C15
    word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
    word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
    word ^= word >> 31
    let digits = String(word, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }

  /// Opens the service's own file with the same settings.
  static func sqlite(_ folder: URL) throws -> SQLiteConnection {
    let path = folder.appendingPathComponent("watershed.sqlite").path
    let connection = try SQLiteConnection(path: path)
    try connection.execute(SQLiteStorage.writerSettings)
    return connection
  }

  /// The duration of the body in seconds.
  static func seconds(_ body: () async throws -> Void) async rethrows -> Double {
    let clock = ContinuousClock()
    let span = try await clock.measure { try await body() }
    return Double(span.components.seconds) + Double(span.components.attoseconds) * 1e-18
  }

  /// The median of a number of measurements.
  static func median(of rounds: Int, _ body: () async throws -> Void) async rethrows -> Double {
    var spans: [Double] = []
    for _ in 0..<rounds { spans.append(try await seconds(body)) }
    return spans.sorted()[rounds / 2]
  }
}
