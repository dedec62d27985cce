import AppleShims
import Foundation
import Testing

@Suite("Names of Apple's frameworks on Linux")
struct AppleShimsTests {
  @Test("A pool calls its closure and passes on its result and its error")
  func pool() throws {
    #expect(autoreleasepool { 1 } == 1)
    #expect(throws: CocoaError.self) {
      try autoreleasepool { throw CocoaError(.fileNoSuchFile) }
    }
  }

  @Test("A logger takes what Apple's takes, and evaluates nothing of it")
  func logger() {
    func costly() -> Int {
      Issue.record("The message was evaluated.")
      return 0
    }
    let logger = Logger(subsystem: "org.example", category: "sync")
    logger.log("plain")
    logger.log(
      level: .debug,
      "\(costly(), privacy: .public) and \("name", privacy: .private(mask: .hash))"
    )
    logger.info("\(costly(), format: .hex, align: .right(columns: 8))")
    logger.error("\(Double(costly()), format: .fixed(precision: 2))")
    logger.fault("\([costly()])")
    let log = OSLog(subsystem: "org.example", category: .pointsOfInterest)
    os_log("%{public}@ of %d", log: log, type: .error, "a", 1)
    os_log("%{private}@", log: log, type: .fault, CocoaError(.fileNoSuchFile) as NSError)
    os_log(.info, log: log, "\(costly())")
    #expect(!log.isEnabled(type: .fault))
    #expect(OSLogType.fault.rawValue == 17)
  }

  /// An observer as adopted code registers it.
  private final class Listener: @unchecked Sendable {
    // Unchecked: one thread uses it.
    var received: [String] = []

    func note(_ notification: Notification) { received.append(notification.name.rawValue) }
  }

  @Test("An observer is called for its name and object, until it is removed")
  func observers() {
    let (center, listener, sender) = (NotificationCenter(), Listener(), NSObject())
    let (first, second) = (Notification.Name("first"), Notification.Name("second"))
    center.addObserver(listener, name: first, object: sender) { $0.note($1) }
    center.addObserver(listener, name: second, object: nil) { $0.note($1) }
    center.post(name: first, object: NSObject())
    center.post(name: first, object: sender)
    center.post(name: second, object: nil)
    #expect(listener.received == ["first", "second"])
    center.removeObserver(listener, name: second, object: nil)
    center.post(name: first, object: sender)
    center.post(name: second, object: nil)
    #expect(listener.received == ["first", "second", "first"])
    NotificationCenter().removeObserver(listener)
    center.post(name: first, object: sender)
    center.removeObserver(listener)
    center.post(name: first, object: sender)
    #expect(listener.received.count == 4)
  }

  @Test("An observer is not retained, and tokens are removed as before")
  func observerLifetimes() {
    let (center, name) = (NotificationCenter(), Notification.Name("first"))
    var listener: Listener? = Listener()
    weak let released = listener
    center.addObserver(listener!, name: name, object: nil) { $0.note($1) }
    listener = nil
    #expect(released == nil)
    center.post(name: name, object: nil)
    let kept = Listener()
    let token = center.addObserver(forName: name, object: nil, queue: nil) { kept.note($0) }
    center.post(name: name, object: nil)
    center.removeObserver(token)
    center.post(name: name, object: nil)
    #expect(kept.received.count == 1)
    let sender = Listener()
    let other = center.addObserver(forName: name, object: sender, queue: nil) { kept.note($0) }
    center.removeObserver(other, name: name, object: sender)
    center.post(name: name, object: sender)
    #expect(kept.received.count == 1)
  }

  @Test("A lock serves its state to one thread at a time")
  func lock() async {
    let lock = OSAllocatedUnfairLock(initialState: 0)
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<8 {
        group.addTask { for _ in 0..<1_000 { lock.withLock { $0 += 1 } } }
      }
    }
    #expect(lock.withLock { $0 } == 8_000)
    #expect(OSAllocatedUnfairLock().withLock { 1 } == 1)
  }

  @Test("A lock that is taken by hand is free again after it is released")
  func lockByHand() {
    let lock = OSAllocatedUnfairLock()
    lock.lock()
    #expect(!lock.lockIfAvailable())
    lock.unlock()
    #expect(lock.lockIfAvailable())
    lock.unlock()
    #expect(NSEC_PER_SEC == 1_000 * NSEC_PER_MSEC)
  }

  @Test("An object's lock serves one thread at a time, and that one again")
  func objectLock() async {
    final class Counter: @unchecked Sendable {
      // Unchecked: the count is only reached inside the object's lock.
      var count = 0
    }
    let counter = Counter()
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<8 {
        group.addTask {
          for _ in 0..<1_000 {
            objc_sync_enter(counter)
            objc_sync_enter(counter)
            counter.count += 1
            objc_sync_exit(counter)
            objc_sync_exit(counter)
          }
        }
      }
    }
    #expect(counter.count == 8_000)
    #expect(objc_sync_exit(counter) == -1)
  }

  @Test("An object's lock is released by the thread that has it, and is one of the object alone")
  func objectLockOwner() {
    final class Key: Sendable {}
    let (first, second) = (Key(), Key())
    #expect(objc_sync_enter(first) == 0)
    #expect(objc_sync_enter(Key.self) == 0)
    let ended = DispatchSemaphore(value: 0)
    let other = Thread {
      #expect(objc_sync_exit(first) == -1)
      #expect(objc_sync_enter(second) == 0)
      #expect(objc_sync_exit(second) == 0)
      ended.signal()
    }
    other.start()
    ended.wait()
    #expect(objc_sync_exit(Key.self) == 0)
    #expect(objc_sync_exit(first) == 0)
    #expect(objc_sync_exit(first) == -1)
    #expect(objc_sync_enter(1) == 0)
    #expect(objc_sync_exit(1) == 0)
  }
}
