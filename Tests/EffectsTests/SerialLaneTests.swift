import Dispatch
import Effects
import Foundation
import Synchronization
import Testing

/// Counts the concurrent visitors, and all visits.
private final class Turnstile: Sendable {
  private let state = Mutex((inside: 0, passed: 0, most: 0))

  func pass() {
    state.withLock { state in
      state.inside += 1
      state.most = max(state.most, state.inside)
    }
    state.withLock { state in
      state.inside -= 1
      state.passed += 1
    }
  }

  var passed: Int { state.withLock { $0.passed } }
  var most: Int { state.withLock { $0.most } }
}

/// A list that any thread may append to.
private final class Record: Sendable {
  private let numbers = Mutex<[Int]>([])

  func add(_ number: Int) { numbers.withLock { $0.append(number) } }
  var all: [Int] { numbers.withLock { $0 } }
}

/// A barrier: `attend` returns when all threads have arrived, and never if some of them need the
/// threads of others to start.
private final class Meeting: Sendable {
  private let count: Int
  private let arrived = Mutex(0)
  private let begin = DispatchSemaphore(value: 0)

  init(of count: Int) { self.count = count }

  var attendance: Int { arrived.withLock { $0 } }

  func attend() {
    let isLast = arrived.withLock { arrived in
      arrived += 1
      return arrived == count
    }
    if isLast { for _ in 0..<count { begin.signal() } }
    begin.wait()
  }
}

@Suite("A serial lane")
struct SerialLaneTests {
  @Test("A lane runs its jobs in FIFO order")
  func order() async throws {
    let lane = SerialLane(label: "test", tasks: PoolTaskSpawner())
    let seen = Record()
    for number in 0..<1000 { lane.async { seen.add(number) } }
    try await lane.run {}
    #expect(seen.all == Array(0..<1000))
  }

  @Test("A lane's owner may enter it again")
  func reentrance() {
    let lane = SerialLane(label: "test", tasks: PoolTaskSpawner())
    let result = lane.sync { lane.sync { lane.isCurrent ? 42 : 0 } }
    #expect(result == 42)
    #expect(!lane.isCurrent)
  }

  @Test(
    "Waiting lanes have threads of their own: more of them wait at once than the pool has threads"
  )
  func waiting() async throws {
    let count = 2 * ProcessInfo.processInfo.activeProcessorCount + 2
    let meeting = Meeting(of: count)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<count {
        group.addTask {
          try await Effects.live.waitingLane("test \(number)").run { meeting.attend() }
        }
      }
      try await group.waitForAll()
    }
    #expect(meeting.attendance == count)
  }

  @Test("Callers that block every thread of the pool still run on a lane, one at a time")
  func contention() async {
    let lane = SerialLane(label: "test", tasks: PoolTaskSpawner())
    let turnstile = Turnstile()
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<64 {
        group.addTask {
          for round in 0..<50 {
            if round % 2 == 0 {
              lane.sync { turnstile.pass() }
            } else {
              lane.async { turnstile.pass() }
            }
          }
        }
      }
    }
    lane.sync {}
    #expect(turnstile.passed == 64 * 50)
    #expect(turnstile.most == 1)
  }

  @Test("An error thrown on a lane reaches the caller, and the lane continues")
  func errors() async {
    struct Broken: Error {}
    let lane = SerialLane(label: "test", tasks: PoolTaskSpawner())
    #expect(throws: Broken.self) { try lane.sync { throw Broken() } }
    await #expect(throws: Broken.self) { try await lane.run { throw Broken() } }
    #expect(lane.sync { 1 } == 1)
  }
}

@Suite("Random sources")
struct RandomSourceTests {
  @Test("Equal seeds give equal sequences, and different seeds different ones")
  func seeds() {
    let first = SeededRandomness(seed: 7)
    let again = SeededRandomness(seed: 7)
    let other = SeededRandomness(seed: 8)
    let sequence = (0..<10).map { _ in first.next() }
    #expect(sequence == (0..<10).map { _ in again.next() })
    #expect(sequence != (0..<10).map { _ in other.next() })
  }

  @Test("Identifiers are random version 4 identifiers")
  func identifiers() {
    let source = SeededRandomness(seed: 1)
    for _ in 0..<100 {
      let bytes = source.uuid().uuid
      #expect(bytes.6 >> 4 == 4)
      #expect(bytes.8 >> 6 == 2)
    }
  }

  @Test("A random source returns the requested number of bytes", arguments: [0, 1, 7, 8, 9, 100])
  func bytes(count: Int) {
    #expect(SeededRandomness(seed: 1).bytes(count).count == count)
  }
}
