import Foundation
import Logging

/// The lines that Core Data with CloudKit writes, for those who look for them.
///
/// `-com.apple.CoreData.CloudKitDebug N` as an argument, or the same user default, raises the
/// detail: 0 tells of set-up and errors, 1 of requests, 2 of their steps, 3 of batches and pages, 4
/// of single records.
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

  /// Read once: the log is asked for its level at every step.
  private static let configuredLevel: Int = {
    let arguments = ProcessInfo.processInfo.arguments
    if let index = arguments.firstIndex(of: "-" + levelKey), index + 1 < arguments.count,
      let level = Int(arguments[index + 1])
    {
      return level
    }
    return UserDefaults.standard.integer(forKey: levelKey)
  }()

  /// The line that tells that a store is set up.
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
