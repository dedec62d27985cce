import Effects
import Foundation

/// The developer's options, set by Core Data's launch arguments.
///
/// The order is: an argument `-com.apple.CoreData.SQLDebug 1`, an environment variable of the same
/// name without the dash, or `COREDATA_SQLDEBUG`, and the user defaults. Each option is read once,
/// at its first use.
enum DebugOptions {
  /// Whether contexts stop the process if they are used off their queue.
  static let checksConcurrency: Bool = {
    guard level("ConcurrencyDebug") > 0 else { return false }
    StandardError.print("CoreData: annotation: Core Data multi-threading assertions enabled.")
    return true
  }()

  /// Above 0 prints SQL and timings; from 3 on the values too, and from 4 on the query plans.
  static let sqlLevel = level("SQLDebug")

  /// Above 0 prints the steps of migrations.
  static let migrationLevel = level("MigrationDebug")

  private static func level(_ name: String) -> Int {
    let key = "com.apple.CoreData.\(name)"
    let process = ProcessInfo.processInfo
    let arguments = process.arguments
    if let index = arguments.firstIndex(of: "-\(key)"), index + 1 < arguments.count {
      return number(arguments[index + 1])
    }
    let environment = process.environment
    if let text = environment[key] ?? environment["COREDATA_\(name.uppercased())"] {
      return number(text)
    }
    // User defaults include arguments and registered defaults.
    return UserDefaults.standard.object(forKey: key).map { number("\($0)") } ?? 0
  }

  private static func number(_ text: String) -> Int {
    if let number = Int(text) { return number }
    return ["yes", "true"].contains(text.lowercased()) ? 1 : 0
  }
}
