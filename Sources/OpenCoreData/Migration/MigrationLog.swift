import Effects
import Foundation

/// Logs the steps of migrations if `-com.apple.CoreData.MigrationDebug 1` is set.
enum MigrationLog {
  static func note(_ message: @autoclosure () -> String) {
    guard DebugOptions.migrationLevel > 0 else { return }
    StandardError.print("CoreData: annotation: (migration)\t\(message())")
  }
}
