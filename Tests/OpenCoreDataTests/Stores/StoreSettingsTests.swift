import Foundation
import Testing

@testable import OpenCoreData

@Suite("The settings of a store")
struct StoreSettingsTests {
  @Test("A store waits for a lock as long as its description says, by default as in Core Data")
  func timeout() {
    let description = NSPersistentStoreDescription()
    #expect(description.timeout == 240)
    #expect(StoreSettings(options: description.options).busyTimeout == description.timeout)
    description.timeout = 3
    #expect(StoreSettings(options: description.options).busyTimeout == 3)
  }
}
