import CloudKitServer
import CloudKitWebServices
import Effects
import Foundation
import Synchronization
import Testing

/// Bodies generated from the types as which the server decodes them, most of them with a defect.
///
/// About a second in the test suite; `make fuzz` sends a configurable number.
@Suite("Fuzzed bodies", .everyEngine)
struct BodyFuzzTests {
  /// The total of requests to each of the two groups of paths; a tenth with PostgreSQL, where each
  /// takes longer.
  private static var rounds: Int {
    let all = ProcessInfo.processInfo.environment["WATERSHED_FUZZ"].flatMap { Int($0) } ?? 1000
    return TestEngine.current == .postgreSQL ? all / 10 : all
  }

  private static let isLong = ProcessInfo.processInfo.environment["WATERSHED_FUZZ"] != nil
  /// Requests to one server before another replaces it: their data would fill the memory.
  private static let roundsPerWorld = 4000

  enum Half: String, CaseIterable {
    /// The documented endpoints.
    case data
    /// Calls about accounts, and the admin API.
    case people
  }

  @Test(
    "Bodies of every decoded type, with any defect, get documented errors",
    arguments: Half.allCases
  )
  func bodies(half: Half) async throws {
    let seed = RequestFuzzTests.seed &+ UInt64(half.rawValue.count)
    let words = FuzzedWords(SeededRandomness(seed: seed))
    let body = FuzzedBody(words: words)
    var memory: [Int] = []
    let rounds = Self.rounds
    var left = rounds
    let start = Date()
    while left > 0 {
      let world = try await FuzzedWorld(half)
      words.kept = world.credentials
      for round in 0..<min(left, Self.roundsPerWorld) {
        let target = words.pick(world.targets)
        let bytes = words.chance(1, in: 50) ? Data() : body.bytes(of: words.pick(target.types))
        let reply = await world.send(bytes, to: target, words)
        Self.check(reply, "\(target.name) \(String(decoding: bytes.prefix(2000), as: UTF8.self))")
        if round % 8 == 0, bytes.count < 100_000 { words.learn(from: reply.body) }
      }
      left -= Self.roundsPerWorld
      try await world.checkWorks()
      await world.end()
      memory.append(Self.residentMegabytes)
    }
    guard Self.isLong else { return }
    let seconds = max(Date().timeIntervalSince(start), 0.001)
    print(
      "fuzz \(half.rawValue) on \(TestEngine.current.rawValue): \(rounds) requests,",
      "seed \(RequestFuzzTests.seed), \(Int(Double(rounds) / seconds)) a second, memory",
      "\(memory.first ?? 0) MB after the first world, \(memory.max() ?? 0) MB at most,",
      "\(memory.last ?? 0) MB at the end"
    )
    // The first servers fill caches and pools; a leak has doubled by then.
    if memory.count >= 20 {
      let settled = memory[memory.count / 4]
      #expect(memory.last ?? 0 <= settled + settled / 2 + 64, "resident megabytes: \(memory)")
    }
  }

  @Test("The fuzzer knows the type of every path that reads a body")
  func types() async throws {
    let data = try await FuzzedWorld(.data)
    let withoutBody: Set<Endpoint> = [
      .listZones, .listSubscriptions, .caller, .currentUser, .lookupContacts,
    ]
    let read = Set(data.targets.filter { !$0.isGuess }.map(\.name))
    for endpoint in Endpoint.allCases where !withoutBody.contains(endpoint) {
      #expect(read.contains(endpoint.rawValue), "\(endpoint.rawValue)")
    }
    let people = try await FuzzedWorld(.people)
    let names = Set(people.targets.filter { !$0.isGuess }.map(\.name))
    let bare: Set<String> = [
      "assets/check", "backup/confirm", "backup/stream", "containers/list", "keys/list",
      "tokens/list",
      "server/status",
      "server/housekeep", "server/new-incarnation", "server/renew-token",
    ]
    for call in AdminEndpoint.all where !bare.contains("\(call.noun)/\(call.verb)") {
      let name = "\(call.noun)/\(call.verb)"
      #expect(names.contains(name), "\(name)")
    }
    for call in OwnAccountCall.allCases where ![.overview, .sendVerification].contains(call) {
      #expect(names.contains(call.rawValue), "\(call)")
    }
  }

  private static func check(_ response: WebServiceResponse, _ what: @autoclosure () -> String) {
    // Reached limits of the whole process are the one failure that a client may get.
    guard response.status >= 500 else { return }
    let error = try? WireCoding.decode(ErrorDictionary.self, from: response.body)
    #expect(
      error?.serverErrorCode == .tryAgainLater,
      "seed \(RequestFuzzTests.seed): \(response.status) for \(what())"
    )
  }

  private static var residentMegabytes: Int {
    // In pages, the second figure; not measured on other systems.
    let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
    let figures = (text ?? "").split(separator: " ")
    return figures.count > 1 ? (Int(figures[1]) ?? 0) * 4096 / 1_048_576 : 0
  }
}

/// A server with some data, and every path to which fuzzed bodies are sent.
private struct FuzzedWorld {
  struct Target {
    var name: String
    var types: [any Decodable.Type]
    /// Whether the path reads no body, or its type is unknown.
    var isGuess: Bool
    fileprivate var place: Place
  }

  fileprivate enum Place {
    case endpoint(Endpoint)
    case path(String)
  }

  let server: TestServer
  private let people: [Person]
  private let key: SigningClient
  private let bearer: String
  private(set) var targets: [Target] = []

  var credentials: [String] {
    [server.apiToken, bearer, key.keyID] + people.compactMap(\.webAuthToken)
  }

  init(_ half: BodyFuzzTests.Half) async throws {
    server = try await TestServer(
      limits: {
        $0.failedSignIns = .max
        $0.failedSignInsPerNetwork = .max
        $0.failedSignInsPerAccount = .max
      },
      registration: .open,
      // The world must not be deleted by a body that names it.
      ownContainer: TestServer.container
    )
    let owner = try await server.person("ada")
    let guest = try await server.person("bob")
    try await owner.makeZone()
    _ = try await owner.modify([
      .make(.create, "root", ["title": .string("Root"), "n": .int64(1)]),
      .make(.create, "a", ["title": .string("a")], parent: "root"), .make(.create, "b"),
    ])
    let share = try await owner.share("root", with: [.invited("bob")])
    try await guest.accept(share)
    people = [owner, owner, owner, guest, server.visitor].flatMap { [$0, $0.extended] }
    key = try await SigningClient(server)
    try await server.service.createAccount(
      userName: "keeper-of-the-house",
      password: "long enough",
      isAdministrator: true
    )
    let start = await server.send(
      "POST",
      "/admin/1/session/start",
      body: Data(#"{"userName":"keeper-of-the-house","password":"long enough"}"#.utf8)
    )
    bearer = try WireCoding.decode(AdminSession.self, from: start.body).token
    switch half {
    case .data: for endpoint in Endpoint.allCases { await add(endpoint) }
    case .people:
      for call in AdminEndpoint.all { await add(call.path, "\(call.noun)/\(call.verb)") }
      let query = "ckAPIToken=\(server.apiToken)&ckWebAuthToken=\(owner.webAuthToken ?? "")"
      for verb in AccountVerb.allCases.map(\.rawValue) + OwnAccountCall.allCases.map(\.rawValue) {
        await add("/account/\(verb)?\(query)", verb)
      }
    }
  }

  /// Adds an endpoint with the types as which its body is decoded.
  private mutating func add(_ endpoint: Endpoint) async {
    let person = people[1]
    let types = await Self.types {
      for scope in [DatabaseScope.public, .private] {
        _ = await person.send(endpoint, Data("{}".utf8), in: scope)
      }
    }
    add(.endpoint(endpoint), endpoint.rawValue, types)
  }

  private mutating func add(_ path: String, _ name: String) async {
    let request = request(Data("{}".utf8), toPath: path)
    let service = server.service
    add(.path(path), name, await Self.types { _ = await service.respond(to: request) })
  }

  private mutating func add(_ place: Place, _ name: String, _ types: [any Decodable.Type]) {
    targets.append(
      Target(
        name: name,
        types: types.isEmpty ? [LookupRecordsRequest.self] : types,
        isGuess: types.isEmpty,
        place: place
      )
    )
  }

  private static func types(_ ask: () async -> Void) async -> [any Decodable.Type] {
    let seen = SeenTypes()
    await ClientBody.$observer.withValue({ seen.add($0) }) { await ask() }
    return seen.all
  }

  func send(
    _ body: Data,
    to target: Target,
    _ words: FuzzedWords
  ) async -> WebServiceResponse {
    switch target.place {
    case .path(let path): return await server.service.respond(to: request(body, toPath: path))
    case .endpoint(let endpoint):
      let scope = words.pick([DatabaseScope.private, .private, .shared, .public])
      if words.chance(1, in: 20),
        let request = try? key.signed(key.path(endpoint, .public), body)
      {
        return await key.send(request)
      }
      return await words.pick(people).send(endpoint, body, in: scope)
    }
  }

  private func request(_ body: Data, toPath path: String) -> WebServiceRequest {
    WebServiceRequest(
      method: "POST",
      path: path,
      headers: ["authorization": "Bearer \(bearer)"],
      body: body
    )
  }

  /// Checks that a new user can use the server.
  func checkWorks() async throws {
    let person = try await server.person("after-all")
    try await person.makeZone()
    try await person.save(.create, "after", ["t": .string("x")], recordType: "After")
    #expect(try await person.lookup("after").recordName == "after")
  }

  func end() async { await server.service.shutdown() }
}

/// The types as which bodies were decoded, by name.
private final class SeenTypes: @unchecked Sendable {
  // Unchecked: `lock` guards the types.
  private let lock = NSLock()
  private var types: [String: any Decodable.Type] = [:]

  func add(_ type: any Decodable.Type) { lock.withLock { types[String(reflecting: type)] = type } }

  var all: [any Decodable.Type] {
    lock.withLock { types.sorted { $0.key < $1.key }.map(\.value) }
  }
}
