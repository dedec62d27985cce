import Foundation
import Logging

/// The log lines of Core Data with CloudKit, in the same words.
///
/// `-com.apple.CoreData.CloudKitDebug N` as an argument, or the same user default, sets the level:
/// 0 logs setup and errors, 1 requests, 2 their steps, 3 batches and pages, 4 single records.
package struct MirrorLog: Sendable {
  package static let levelKey = "com.apple.CoreData.CloudKitDebug"

  private let logger: Logger
  private let name: String
  package let level: Int

  package init(address: UInt, level: Int? = nil) {
    logger = Logger(label: "com.apple.coredata.cloudkit")
    name = "<NSCloudKitMirroringDelegate: 0x\(String(address, radix: 16))>"
    self.level = level ?? Self.configuredLevel
  }

  /// Read once, because the level is checked at every step.
  private static let configuredLevel: Int = {
    let arguments = ProcessInfo.processInfo.arguments
    if let index = arguments.firstIndex(of: "-" + levelKey), index + 1 < arguments.count,
      let level = Int(arguments[index + 1])
    {
      return level
    }
    return UserDefaults.standard.integer(forKey: levelKey)
  }()

  /// Logs that a store is set up.
  func setUp(storeIdentifier: String, url: URL?) {
    logger.notice(
      """
      \(name): Successfully set up CloudKit integration for store (\(storeIdentifier)): \
      \(url?.path ?? "in memory")
      """
    )
  }

  func error(_ text: String) {
    logger.error("\(name): \(text)")
  }

  func detail(_ level: Int, _ text: @autoclosure () -> String) {
    guard level <= self.level else { return }
    let line = text()
    logger.notice("\(name): \(line)")
  }
}
