#if !canImport(ObjectiveC)
import Foundation
import Synchronization

/// Waits for the lock of an object and takes it; the thread that has it takes it again.
///
/// The lock is one of the object's identity, or of a type's; a value has none and is not locked.
@discardableResult
public func objc_sync_enter(_ object: Any) -> Int32 {
  guard let identity = ObjectLock.identity(of: object) else { return 0 }
  ObjectLock.enter(identity)
  return 0
}

/// Releases the lock of an object once; the result is -1 where the thread does not have it.
@discardableResult
public func objc_sync_exit(_ object: Any) -> Int32 {
  guard let identity = ObjectLock.identity(of: object) else { return 0 }
  return ObjectLock.exit(identity) ? 0 : -1
}

/// The lock of an object, which exists while threads have it or wait for it.
private final class ObjectLock: @unchecked Sendable {
  // Unchecked: the variables are only used inside the lock around all locks.

  private static let all = Mutex<[ObjectIdentifier: ObjectLock]>([:])

  private let lock = NSRecursiveLock()
  /// How many times threads have it or wait for it.
  private var uses = 0
  private var owner: ObjectIdentifier?
  private var depth = 0

  static func identity(of object: Any) -> ObjectIdentifier? {
    if let type = object as? any Any.Type { return ObjectIdentifier(type) }
    guard type(of: object) is AnyClass else { return nil }
    return ObjectIdentifier(object as AnyObject)
  }

  static func enter(_ identity: ObjectIdentifier) {
    let thread = ObjectIdentifier(Thread.current)
    let lock = all.withLock { all in
      let lock = all[identity] ?? ObjectLock()
      all[identity] = lock
      lock.uses += 1
      return lock
    }
    lock.lock.lock()
    all.withLock { _ in
      lock.owner = thread
      lock.depth += 1
    }
  }

  static func exit(_ identity: ObjectIdentifier) -> Bool {
    let thread = ObjectIdentifier(Thread.current)
    let lock = all.withLock { all -> ObjectLock? in
      guard let lock = all[identity], lock.owner == thread else { return nil }
      lock.depth -= 1
      if lock.depth == 0 { lock.owner = nil }
      lock.uses -= 1
      if lock.uses == 0 { all[identity] = nil }
      return lock
    }
    lock?.lock.unlock()
    return lock != nil
  }
}
#endif
