import CloudKitWebServices
import Effects
import Foundation
import Synchronization
import Testing
import WatershedSQLite

@testable import CloudKitServer

/// Slow reads: their threads, their time limit, and their queue.
@Suite("Slow reads")
struct ReadQueueTests {
  /// A read that runs until the test ends it.
  private final class Gate: Sendable {
    private let condition = NSCondition()
    private let isOpen = Mutex(false)
    let entered = Mutex(0)

    func pass() {
      entered.withLock { $0 += 1 }
      condition.lock()
      while !isOpen.withLock({ $0 }) { condition.wait() }
      condition.unlock()
    }

    func open() {
      condition.lock()
      isOpen.withLock { $0 = true }
      condition.broadcast()
      condition.unlock()
    }
  }

  /// The readers in the order of their turns.
  private final class Journal: Sendable {
    private let names = Mutex<[String]>([])

    var readers: [String] { names.withLock { $0 } }

    func note(_ reader: String) { names.withLock { $0.append(reader) } }
  }

  private var effects: Effects {
    Effects(clock: StoppedClock(), randomness: SeededRandomness(seed: 1), tasks: PoolTaskSpawner())
  }

  @Test("One user's slow reads leave threads for others, and their own further reads wait")
  func fairness() async throws {
    let queue = ReadQueue(threads: 4, waiting: 10, waitingPerReader: 10, effects: effects)
    let gate = Gate()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<6 {
        group.addTask { try await queue.run(.lookup, for: "eve") { gate.pass() } }
      }
      // However long Eve's reads take, Ada's and Bob's are executed.
      for person in ["ada", "bob", "ada", "bob"] {
        #expect(try await queue.run(.lookup, for: person) { 1 } == 1)
      }
      #expect(gate.entered.withLock { $0 } <= 2)
      gate.open()
      try await group.waitForAll()
    }
    #expect(gate.entered.withLock { $0 } == 6)
  }

  @Test("Beyond the limit of queued reads a further one gets a retry time")
  func lineLimit() async throws {
    let queue = ReadQueue(threads: 1, waiting: 0, waitingPerReader: 10, effects: effects)
    let gate = Gate()
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await queue.run(.lookup, for: "eve") { gate.pass() } }
      while gate.entered.withLock({ $0 }) == 0 { await Task.yield() }
      let error = await #expect(throws: ErrorDictionary.self) {
        try await queue.run(.lookup, for: "ada") { 1 }
      }
      #expect(error?.serverErrorCode == .tryAgainLater)
      #expect(error?.retryAfter == 1)
      gate.open()
      try await group.waitForAll()
    }
  }

  @Test("Readers take turns, with a limited number of queued reads each")
  func turns() async throws {
    let queue = ReadQueue(threads: 1, waiting: 10, waitingPerReader: 3, effects: effects)
    let gate = Gate()
    let journal = Journal()
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await queue.run(.lookup, for: "eve") { gate.pass() } }
      while gate.entered.withLock({ $0 }) == 0 { await Task.yield() }
      for (index, reader) in ["eve", "eve", "eve", "ada", "ada", "bob"].enumerated() {
        group.addTask { try await queue.run(.lookup, for: reader) { journal.note(reader) } }
        while queue.waitingCount <= index { await Task.yield() }
      }
      let refused = await #expect(throws: ErrorDictionary.self) {
        try await queue.run(.lookup, for: "eve") {}
      }
      #expect(refused?.serverErrorCode == .tryAgainLater)
      gate.open()
      try await group.waitForAll()
    }
    #expect(journal.readers == ["eve", "ada", "bob", "eve", "ada", "eve"])
  }

  @Test("A read that is cancelled while it is queued is removed at once")
  func cancelledWait() async throws {
    let queue = ReadQueue(threads: 1, waiting: 10, waitingPerReader: 10, effects: effects)
    let gate = Gate()
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await queue.run(.lookup, for: "eve") { gate.pass() } }
      while gate.entered.withLock({ $0 }) == 0 { await Task.yield() }
      let waiting = Task { try await queue.run(.lookup, for: "ada") {} }
      while queue.waitingCount == 0 { await Task.yield() }
      waiting.cancel()
      // The thread is still in use.
      await #expect(throws: ReadOver.self) { try await waiting.value }
      #expect(queue.waitingCount == 0)
      gate.open()
      try await group.waitForAll()
    }
    #expect(try await queue.run(.lookup, for: "bob") { 1 } == 1)
  }

  /// A clock whose time passes by sleeping.
  private final class SleptClock: EffectClock {
    private let seconds = Mutex(0.0)

    var now: Date { Date(timeIntervalSince1970: uptime) }
    var uptime: Double { seconds.withLock { $0 } }

    func sleep(seconds pause: Double) async throws { seconds.withLock { $0 += pause } }
  }

  @Test("A queued read ends with its time, although no thread becomes free")
  func lateWait() async throws {
    let clock = SleptClock()
    let effects = Effects(
      clock: clock,
      randomness: SeededRandomness(seed: 1),
      tasks: PoolTaskSpawner()
    )
    let queue = ReadQueue(threads: 1, waiting: 10, waitingPerReader: 10, effects: effects)
    let gate = Gate()
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await queue.run(.scan, for: "eve") { gate.pass() } }
      while gate.entered.withLock({ $0 }) == 0 { await Task.yield() }
      // Twice: the task that ends them begins again.
      for _ in 0..<2 {
        let control = ReadControl(seconds: 20, clock: clock)
        await #expect(throws: ReadOver.self) {
          try await queue.run(.lookup, for: "ada", control) {}
        }
        #expect(control.isOver)
        #expect(queue.waitingCount == 0)
      }
      gate.open()
      try await group.waitForAll()
    }
    #expect(try await queue.run(.lookup, for: "bob") { 1 } == 1)
  }

  @Test("However many people scan, a look-up finds a thread, and a waiting scan the next one")
  func lookups() async throws {
    let queue = ReadQueue(threads: 4, waiting: 100, waitingPerReader: 10, effects: effects)
    let gate = Gate()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for person in ["a", "b", "c", "d", "e", "f"] {
        for _ in 0..<2 { group.addTask { try await queue.run(.scan, for: person) { gate.pass() } } }
      }
      while queue.waitingCount < 9 { await Task.yield() }
      for person in ["ada", "bob", "ada"] {
        #expect(try await queue.run(.lookup, for: person) { 1 } == 1)
      }
      #expect(gate.entered.withLock { $0 } <= 3)
      gate.open()
      try await group.waitForAll()
    }
    #expect(gate.entered.withLock { $0 } == 12)
    #expect(queue.waitingCount == 0)
  }

  @Test("The reads of one request share its time")
  func sharedTime() async throws {
    let clock = StoppedClock()
    let effects = Effects(
      clock: clock,
      randomness: SeededRandomness(seed: 1),
      tasks: PoolTaskSpawner()
    )
    let reads = BoundedReads(ServiceLimits(), effects)
    var context = RequestContext(
      container: "c",
      environment: .development,
      scope: .public,
      caller: .anonymous(apiToken: nil, signInURL: ""),
      isExtended: true,
      wantsSyncToken: false
    )
    context.readTime = ReadTime(seconds: 20)
    for kind in [ReadQueue.Kind.lookup, .scan] {
      try await reads.run(kind, for: context) { control in
        clock.advance(seconds: 9)
        try control.check()
      }
    }
    // What the request waits for besides does not count.
    clock.advance(seconds: 100)
    let late = await #expect(throws: ErrorDictionary.self) {
      try await reads.run(for: context) { control in
        clock.advance(seconds: 3)
        try control.check()
      }
    }
    #expect(late?.serverErrorCode == .tryAgainLater)
    #expect(late?.retryAfter == 10)
  }

  @Test("A query has one time for all of its reads")
  func queryTime() async throws {
    let clock = StoppedClock()
    let seconds = Mutex(0.0)
    let count = ReadCount(onRead: { clock.advance(seconds: seconds.withLock { $0 }) })
    let server = try await TestServer(
      clock: clock,
      isLenient: true,
      storage: { FlakyStorage($0, counting: count) }
    )
    let person = try await server.person()
    try await person.makeZone()
    try await person.save(.create, "a", ["n": .int64(1)])
    let request = QueryRecordsRequest(
      query: RecordQuery(recordType: "Note"),
      zoneID: TestServer.zone
    )
    func query() async throws {
      let reply: RecordsResponse = try await person.call(.queryRecords, request)
      #expect(reply.records.count == 1)
    }
    // The first one makes the index.
    try await query()
    seconds.withLock { $0 = 9 }
    try await query()
    // The first of two reads leaves nine seconds to the second.
    seconds.withLock { $0 = 11 }
    let late = try await person.failure(.queryRecords, request)
    #expect(late.serverErrorCode == .tryAgainLater)
    #expect(late.retryAfter == 10)
  }

  @Test("A failed read releases its thread")
  func failure() async throws {
    struct Failure: Error {}
    let queue = ReadQueue(threads: 1, waiting: 1, waitingPerReader: 10, effects: effects)
    for _ in 0..<3 {
      await #expect(throws: Failure.self) {
        try await queue.run(.lookup, for: "a") { throw Failure() }
      }
    }
    #expect(try await queue.run(.lookup, for: "b") { 1 } == 1)
  }

  @Test("A statement ends when its reader's time is over or its request is cancelled")
  func interruption() throws {
    let clock = StoppedClock()
    let connection = try SQLiteConnection(path: ":memory:")
    let endless =
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT MAX(i) FROM n"
    for isCancelled in [false, true] {
      let control = ReadControl(seconds: 20, clock: clock)
      var questions = 0
      let error = #expect(throws: SQLiteError.self) {
        try connection.interrupting(
          when: {
            questions += 1
            if questions == 3 {
              if isCancelled { control.cancel() } else { clock.advance(seconds: 21) }
            }
            return control.isOver
          },
          { _ = try connection.scalar(endless) }
        )
      }
      #expect(error?.isInterrupted == true)
    }
    // The connection is still usable.
    #expect(try connection.scalar("SELECT 7") == .integer(7))
  }

  @Test("A query over its time limit gets that error, and the next one runs")
  func time() async throws {
    let server = try await TestServer(isLenient: true, limits: { $0.readTime = -1 })
    let person = try await server.person()
    try await person.makeZone()
    let late = try await person.failure(
      .lookupRecords,
      LookupRecordsRequest(records: [LookupRecord(recordName: "a")], zoneID: TestServer.zone)
    )
    #expect(late.serverErrorCode == .tryAgainLater)
    #expect(late.retryAfter == 10)
    #expect(await server.service.isReady())
  }
}
