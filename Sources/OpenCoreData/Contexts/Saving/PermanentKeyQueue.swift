import Synchronization

/// Permanent keys of objects that a child context knows by temporary ones, queued for the child.
///
/// The parent assigns them on its own lane while the child may be running. The child takes them
/// before it creates an object for a permanent key, or one row would have two objects.
final class PermanentKeyQueue: Sendable {
  typealias Pair = (former: Int64, key: ObjectKey)

  private let count = Atomic<Int>(0)
  private let pairs = Mutex<[Pair]>([])

  /// Whether any keys are queued; cheap enough to check for each object that is created.
  @inline(__always)
  var isEmpty: Bool { count.load(ordering: .acquiring) == 0 }

  func add(_ more: [Pair]) {
    pairs.withLock { pairs in
      pairs += more
      count.store(pairs.count, ordering: .releasing)
    }
  }

  func takeAll() -> [Pair] {
    pairs.withLock { pairs in
      defer { pairs = [] }
      count.store(0, ordering: .releasing)
      return pairs
    }
  }
}
