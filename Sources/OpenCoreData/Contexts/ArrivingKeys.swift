import Synchronization

/// Lasting keys of objects that a child context knows by temporary ones, on their way to it.
///
/// The parent gives them out on its own lane while the child may be at work. The child takes them
/// before it makes an object for a lasting key, or one row would have two objects.
final class ArrivingKeys: Sendable {
  typealias Pair = (former: Int64, key: ObjectKey)

  private let count = Atomic<Int>(0)
  private let pairs = Mutex<[Pair]>([])

  /// Whether there are any; cheap enough to be asked for each object that is made.
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
