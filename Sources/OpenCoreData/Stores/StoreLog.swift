import Effects
import Foundation

/// Logs problems of a store that do not prevent it from continuing.
enum StoreLog {
  static func warning(_ message: String) {
    StandardError.print("CoreData: warning: \(message)")
  }
}
