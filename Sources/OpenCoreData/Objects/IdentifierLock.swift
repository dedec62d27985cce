import Synchronization

/// Guards the identifiers of objects, which are passed between threads as nothing else of an object is.
///
/// One lock for each object would make all of them larger, so a few are shared by all.
final class IdentifierLock: Sendable {
  private let mutex = Mutex(())

  /// More than there are threads that ask at the same time.
  private static let count = 64
  private static let all = (0..<count).map { _ in IdentifierLock() }

  static func of(_ object: NSManagedObject) -> IdentifierLock {
    // Objects lie 16 bytes apart or more, so the lowest bits are the same for all.
    let address = UInt(bitPattern: Unmanaged.passUnretained(object).toOpaque())
    return all[Int((address >> 6) % UInt(count))]
  }

  func withLock<Result: Sendable>(_ body: () -> Result) -> Result {
    mutex.withLock { _ in body() }
  }
}
