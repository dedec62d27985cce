#if canImport(os)
import os
#else
import AppleShims
#endif
import Foundation
import Testing

@Suite("Examples: names of Apple's frameworks")
struct AppleShimsExamples {
  @Test("A lock guards a state")
  func lock() {
    // example: OSAllocatedUnfairLock
    let count = OSAllocatedUnfairLock(initialState: 0)
    DispatchQueue.concurrentPerform(iterations: 100) { _ in
      count.withLock { $0 += 1 }
    }
    print(count.withLock { $0 })  // 100
    // end
    #expect(count.withLock { $0 } == 100)
  }

  @Test("Logs take messages with values")
  func logs() {
    let failure = CocoaError(.fileNoSuchFile)
    // example: Logger
    let logger = Logger(subsystem: "org.example.notes", category: "sync")
    logger.error("The import failed: \(failure, privacy: .public)")
    // end
    // example: OSLog
    let log = OSLog(subsystem: "org.example.notes", category: "sync")
    os_log("The import failed: %@", log: log, type: .error, "\(failure)")
    // end
    #expect(OSLogType.error.rawValue == 16)
  }

  @Test("An autorelease pool returns the result of its closure")
  func pool() {
    let texts = ["1", "2"]
    // example: autoreleasepool
    let numbers = autoreleasepool { texts.compactMap { Int($0) } }
    // end
    #expect(numbers == [1, 2])
  }

  @Test("An observable object holds its published values")
  func observableObject() {
    // example: ObservableObject
    final class Counter: ObservableObject {
      @Published var count = 0
    }
    // end
    let counter = Counter()
    counter.count += 1
    #expect(counter.count == 1)
  }

  @Test("A table with weak keys")
  func mapTable() {
    let store = NSObject()
    // example: NSMapTable
    let observers = NSMapTable<NSObject, NSMutableSet>.weakToStrongObjects()
    observers.setObject(NSMutableSet(), forKey: store)
    // end
    #expect(observers.object(forKey: store)?.count == 0)
  }

  @Test("String(localized:) returns the key if there is no translation")
  func localizedString() {
    // example: localized string
    let title = String(localized: "Notes", bundle: .main, comment: "The title of the list")
    // end
    #expect(title == "Notes")
  }
}
