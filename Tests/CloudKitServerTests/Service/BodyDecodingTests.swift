import CloudKitWebServices
import Effects
import Foundation
import Synchronization
import Testing

@testable import CloudKitServer

/// Large bodies and the threads that decode them.
@Suite("Decoding of bodies")
struct BodyDecodingTests {
  /// A body whose decoding waits until the test ends it.
  private struct Slow: Decodable, Sendable {
    static let begun = Mutex(0)
    static let gate = NSCondition()
    nonisolated(unsafe) static var isOpen = false

    init(from decoder: any Decoder) throws {
      Self.begun.withLock { $0 += 1 }
      Self.gate.lock()
      while !Self.isOpen { Self.gate.wait() }
      Self.gate.unlock()
    }

    static func open() {
      gate.lock()
      isOpen = true
      gate.broadcast()
      gate.unlock()
    }
  }

  private struct Quick: Decodable, Sendable {}

  private func context(of site: String) -> RequestContext {
    RequestContext(
      container: "c",
      environment: .development,
      scope: .public,
      caller: .anonymous(apiToken: nil, signInURL: ""),
      isExtended: true,
      wantsSyncToken: false,
      site: site
    )
  }

  @Test("Large bodies of one user leave the pool and a thread to others")
  func turns() async throws {
    let effects = Effects(
      clock: StoppedClock(),
      randomness: SeededRandomness(seed: 1),
      tasks: PoolTaskSpawner()
    )
    var limits = ServiceLimits()
    limits.largeRequestSize = 2
    let decoding = BodyDecoding(limits, BoundedReads(limits, effects), effects)
    let bounds = JSONBounds(arrays: [:], otherArrays: 10, values: 10)
    let body = Data(#"{"a":1}"#.utf8)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<8 {
        group.addTask {
          _ = try await decoding.decode(
            Slow.self,
            from: body,
            within: bounds,
            for: context(of: "eve")
          )
        }
      }
      // However long those bodies take, another user's is decoded, and a small one on the pool.
      for text in [#"{"a":1}"#, "{}"] {
        _ = try await decoding.decode(
          Quick.self,
          from: Data(text.utf8),
          within: bounds,
          for: context(of: "ada")
        )
      }
      #expect(Slow.begun.withLock { $0 } <= 1)
      Slow.open()
      try await group.waitForAll()
    }
    #expect(Slow.begun.withLock { $0 } == 8)
  }
}
