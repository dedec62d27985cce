import Effects
import Foundation

/// Says what migrations do, where `-com.apple.CoreData.MigrationDebug 1` asks for it.
enum MigrationLog {
  static func note(_ message: @autoclosure () -> String) {
    guard DebugOptions.migrationLevel > 0 else { return }
    StandardError.print("CoreData: annotation: (migration)\t\(message())")
  }
}
