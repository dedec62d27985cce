import CloudKitWebServices
import Effects
import Foundation
import Synchronization
import Testing

@testable import CloudKitServer

/// The counting of a database's size, and the account that requests are counted for.
@Suite("Counting for quotas and rates")
struct QuotaCountTests {
  /// Files in memory, whose listings wait until the test lets them through.
  private final class GatedAssetStore: ForwardingAssetStore {
    private struct Gate {
      var isOpen = false
      var waiting: [CheckedContinuation<Void, Never>] = []
    }

    let store = MemoryAssetStore { Date(timeIntervalSince1970: 1_700_000_000) }
    private let gate = Mutex(Gate())
    private let count = Mutex(0)

    var listings: Int { count.withLock { $0 } }

    func set(isOpen: Bool) {
      let waiting = gate.withLock { gate in
        gate.isOpen = isOpen
        defer { if isOpen { gate.waiting = [] } }
        return isOpen ? gate.waiting : []
      }
      for continuation in waiting { continuation.resume() }
    }

    func files(in partition: PartitionID) async throws -> [StoredAssetFile] {
      count.withLock { $0 += 1 }
      await withCheckedContinuation { continuation in
        let isOpen = gate.withLock { gate in
          if !gate.isOpen { gate.waiting.append(continuation) }
          return gate.isOpen
        }
        if isOpen { continuation.resume() }
      }
      return try await store.files(in: partition)
    }
  }

  @Test("Concurrent requests share one count of a database, and a later one uses the former count")
  func oneCount() async throws {
    let store = GatedAssetStore()
    let server = try await TestServer(assetStore: store)
    let service = server.service
    let id = try service.storage.partition(.privateDatabase)
    let requests = (0..<8).map { _ in Task { try await service.quotas.usedBytes(in: id) } }
    while store.listings + service.quotas.ledger.waitingCount < 8 { await Task.yield() }
    #expect(store.listings == 1)
    store.set(isOpen: true)
    var sizes: Set<Int64> = []
    for request in requests { sizes.insert(try await request.value) }
    #expect(sizes.count == 1)
    #expect(store.listings == 1)
    // The count is old: one request counts again, the others do not wait for it.
    store.set(isOpen: false)
    server.clock.advance(seconds: 61)
    let counting = Task { try await service.quotas.usedBytes(in: id) }
    while store.listings < 2 { await Task.yield() }
    #expect(try await service.quotas.usedBytes(in: id) == sizes.first)
    store.set(isOpen: true)
    #expect(try await counting.value == sizes.first)
    #expect(store.listings == 2)
  }

  @Test("After a count that fails, the next request counts")
  func failedCount() async {
    let ledger = QuotaLedger()
    let place = PartitionID(rawValue: 1)
    guard case .count = await ledger.claim(place, now: 0) else {
      Issue.record("the first claim is no turn to count")
      return
    }
    let waiting = Task { await ledger.claim(place, now: 0) }
    while ledger.waitingCount == 0 { await Task.yield() }
    ledger.finish(place, nil, now: 0)
    guard case .retry = await waiting.value, case .count = await ledger.claim(place, now: 0) else {
      Issue.record("the failed count is used")
      return
    }
    // A count that took two seconds is used for a hundred.
    ledger.finish(place, 7, now: 0, took: 2000)
    guard case .known(7) = await ledger.claim(place, now: 99_999),
      case .count = await ledger.claim(place, now: 100_000)
    else {
      Issue.record("the count is used too long or too short")
      return
    }
  }

  @Test("A full database is counted again a minute after its count if rows were deleted")
  func countAfterDeletion() async {
    let ledger = QuotaLedger()
    let place = PartitionID(rawValue: 1)
    let cases: [(quota: Int64, took: Int64, again: Int64)] = [
      // A count that took so long is used for an hour, and after a deletion four times as long.
      (8, 100_000, 3_600_000), (7, 100_000, 400_000), (7, 10_000, 60_000),
    ]
    for (quota, took, again) in cases {
      _ = await ledger.claim(place, now: 0)
      ledger.finish(place, 7, now: 0, took: took)
      ledger.noteDeletion(in: place, quota: quota)
      guard case .known(7) = await ledger.claim(place, now: again - 1),
        case .count = await ledger.claim(place, now: again)
      else {
        Issue.record("the count is used too long or too short with the quota \(quota)")
        return
      }
      ledger.finish(place, nil, now: again)
    }
  }

  @Test("A user whose database is full can save again after deleting, also if counting is slow")
  func deletionMakesRoom() async throws {
    let store = GatedAssetStore()
    store.set(isOpen: true)
    let server = try await TestServer(limits: { $0.userQuota = 60_000 }, assetStore: store)
    let ada = try await server.person()
    try await ada.makeZone()
    let text = String(repeating: "x", count: 40_000)
    try await ada.save(.create, "large", ["text": .string(text)])
    server.clock.advance(seconds: 61)
    store.set(isOpen: false)
    let listings = store.listings
    let slow = Task { try await ada.save(.create, "more", ["text": .string(text)]) }
    while store.listings == listings { await Task.yield() }
    // The count takes two minutes.
    server.clock.advance(seconds: 120)
    store.set(isOpen: true)
    _ = try await slow.value
    try await ada.save(.forceDelete, "more", recordType: nil)
    try await ada.save(.forceDelete, "large", recordType: nil)
    // Four times as long as the count took.
    server.clock.advance(seconds: 4 * 120 + 1)
    try await ada.save(.create, "after", ["text": .string(text)])
  }

  @Test("A count is not used for longer when the wall clock is set back")
  func clockSetBack() async throws {
    let clock = TurnedClock()
    let store = GatedAssetStore()
    store.set(isOpen: true)
    let effects = Effects(
      clock: clock,
      randomness: SeededRandomness(seed: 1),
      tasks: PoolTaskSpawner()
    )
    let quotas = DatabaseQuotas(
      try TestEngine.storage(effects),
      store,
      ServiceLimits(),
      effects
    )
    let place = PartitionID(rawValue: 1)
    _ = try await quotas.usedBytes(in: place)
    #expect(store.listings == 1)
    clock.turnBack(seconds: 86_400, after: 61)
    _ = try await quotas.usedBytes(in: place)
    #expect(store.listings == 2)
  }

  /// A wall clock that can be set back beside a monotonic one.
  private final class TurnedClock: EffectClock {
    private let state = Mutex((uptime: 1000.0, date: Date(timeIntervalSince1970: 1_700_000_000)))

    var now: Date { state.withLock { $0.date } }
    var uptime: Double { state.withLock { $0.uptime } }
    func sleep(seconds: Double) async throws {}

    func turnBack(seconds: Double, after passed: Double) {
      state.withLock {
        $0.uptime += passed
        $0.date -= seconds
      }
    }
  }

  @Test("A batch that is refused takes no room of the quota")
  func refusedBatch() async throws {
    let server = try await TestServer(limits: { $0.userQuota = 100_000 })
    let ada = try await server.person()
    try await ada.makeZone()
    let refused = try WireCoding.encode(
      ModifyRecordsRequest(operations: [.make(.update, "none", tag: "1")], zoneID: TestServer.zone)
    )
    for _ in 0..<3 {
      let response = await ada.send(.modifyRecords, refused + Data(repeating: 32, count: 60_000))
      #expect(response.status == 200)
      let reply = try WireCoding.decode(RecordsResponse.self, from: response.body)
      #expect(reply.records[0].error != nil)
    }
    try await ada.save(.create, "a")
  }

  @Test("A sign-in beyond the limit of containers per user creates no partition")
  func refusedContainer() async throws {
    let server = try await TestServer(limits: { $0.containersPerUser = 1 })
    _ = try await server.person()
    func partitions() throws -> Int {
      try server.service.storage.read { try $0.partitions().count }
    }
    let before = try partitions()
    await #expect(throws: ErrorDictionary.self) {
      try await server.service.signIn(userName: "ada", container: "iCloud.other")
    }
    #expect(try partitions() == before)
  }

  @Test("Requests of one account in several containers count together")
  func rateOfAccount() async throws {
    let server = try await TestServer(limits: {
      $0.requestsPerSecond = 1
      $0.requestBurst = 6
    })
    _ = try await server.person()
    var statuses: [Int] = []
    for container in ["iCloud.one", "iCloud.two"] {
      let token = try await server.service.signIn(userName: "ada", container: container)
      let path = WebServicePath(
        container: container,
        environment: .development,
        database: .public,
        endpoint: .caller
      ).text(items: [
        (WebServiceName.apiToken, server.apiToken), (WebServiceName.webAuthToken, token),
      ])
      for _ in 0..<4 {
        statuses.append(await server.send("POST", path, body: Data("{}".utf8)).status)
      }
    }
    #expect(statuses == [200, 200, 200, 200, 200, 200, 429, 429])
  }

  @Test("Partitions use all lanes but the directory's")
  func lanes() {
    let numbers = (0..<1000).map { Int64($0) << 1 | 1 }
    for count in [1, 2, 8, 16] {
      let lanes = Set(
        numbers.map { StorageWriter.lane(of: PartitionID(rawValue: $0), count: count) }
      )
      #expect(lanes == (count == 1 ? [0] : Set(1..<count)))
      #expect(StorageWriter.lane(of: nil, count: count) == 0)
    }
  }
}
