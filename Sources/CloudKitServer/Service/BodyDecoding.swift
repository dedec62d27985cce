import CloudKitWebServices
import Effects
import Foundation

/// Decodes the bodies of requests: large ones on a few threads besides the pool, one of each user or
/// site at a time and in turns, so that bodies of one user never keep the pool from other requests.
final class BodyDecoding: Sendable {
  private let queue: ReadQueue
  private let reads: BoundedReads
  private let largeSize: Int

  init(_ limits: ServiceLimits, _ reads: BoundedReads, _ effects: Effects) {
    queue = ReadQueue(
      "server decoding",
      threads: limits.decodingThreads,
      waiting: limits.waitingReads,
      waitingPerReader: limits.waitingReadsPerReader,
      effects: effects
    )
    self.reads = reads
    largeSize = limits.largeRequestSize
  }

  /// The number of bodies that wait for a thread.
  var waitingCount: Int { queue.waitingCount }

  func decode<Value: Decodable & Sendable>(
    _ type: Value.Type,
    from body: Data,
    within bounds: JSONBounds,
    for context: RequestContext
  ) async throws -> Value {
    guard body.count > largeSize else {
      return try ClientBody.decode(type, from: body, within: bounds)
    }
    // The thread has none of the task's values.
    ClientBody.observer?(type)
    do {
      return try await queue.run(.lookup, for: reads.reader(of: context)) {
        try ClientBody.decode(type, from: body, within: bounds)
      }
    } catch let error as ReadOver {
      throw error.dictionary
    }
  }
}
