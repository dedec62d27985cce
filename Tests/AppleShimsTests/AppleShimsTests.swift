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
}
