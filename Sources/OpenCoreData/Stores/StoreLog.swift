import Effects
import Foundation

/// Where a store says what it could not do but could go on without.
enum StoreLog {
  static func warning(_ message: String) {
    StandardError.print("CoreData: warning: \(message)")
  }
}
