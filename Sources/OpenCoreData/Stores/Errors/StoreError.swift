import Foundation
import WatershedSQLite

/// An error of a store: its message, its cause and a remedy.
package struct StoreError: Error, CustomStringConvertible, @unchecked Sendable {
  // Unchecked: the context contains property-list values, which are not mutated.
  /// Core Data's own codes, as `CoreDataErrors.h` and `FoundationErrors.h` number them.
  package enum Code: Int, Sendable {
    case fileReadUnknown = 256
    case fileReadNoPermission = 257
    case fileReadCorrupt = 259
    case fileReadNoSuchFile = 260
    case fileWriteUnknown = 512
    case fileWriteNoPermission = 513
    case fileWriteFileExists = 516
    case fileWriteOutOfSpace = 640
    case fileWriteVolumeReadOnly = 642
    case constraintMerge = 133_021
    case incompatibleSchema = 134_020
    case save = 134_030
    case coreData = 134_060
    case operation = 134_070
    case open = 134_080
    case timeout = 134_090
    case unsupportedRequest = 134_091
    case incompatibleVersionHash = 134_100
    case sqlite = 134_180
    case historyTokenExpired = 134_301
  }

  package var code: Code
  package var message: String
  /// The remedy.
  package var remedy: String
  /// The `userInfo` of the bridged error.
  package var context: [String: Any]
  package var cause: (any Error)?

  package init(
    _ code: Code,
    _ message: String,
    remedy: String,
    context: [String: Any] = [:],
    cause: (any Error)? = nil
  ) {
    self.code = code
    self.message = message
    self.remedy = remedy
    self.context = context
    self.cause = cause
  }

  package var description: String { "\(message) \(remedy)" }

  /// The error for callers: Cocoa's domain, Core Data's code.
  package var nsError: NSError {
    var userInfo = context
    userInfo[NSLocalizedDescriptionKey] = message
    if userInfo["reason"] == nil { userInfo["reason"] = message }
    userInfo[NSLocalizedRecoverySuggestionErrorKey] = remedy
    if let sqlite = cause as? SQLiteError {
      userInfo["NSSQLiteErrorDomain"] = Int(sqlite.extendedCode)
      userInfo[NSUnderlyingErrorKey] = NSError(
        domain: "NSSQLiteErrorDomain",
        code: Int(sqlite.extendedCode),
        userInfo: [NSLocalizedDescriptionKey: sqlite.description]
      )
    } else if let cause {
      userInfo[NSUnderlyingErrorKey] = cause
    }
    return NSError(domain: NSCocoaErrorDomain, code: code.rawValue, userInfo: userInfo)
  }
}

extension StoreError {
  /// Converts an error of SQLite to Core Data's codes.
  static func from(_ error: SQLiteError, at path: String, while action: String) -> StoreError {
    let context: [String: Any] = ["NSFilePath": path]
    func make(_ code: Code, _ message: String, _ remedy: String) -> StoreError {
      StoreError(code, message, remedy: remedy, context: context, cause: error)
    }
    if error.isFull {
      return make(
        .fileWriteOutOfSpace,
        "The disk is full, so nothing was saved to \(path).",
        "Free some space and save again."
      )
    }
    if error.isReadOnly {
      return make(
        .fileWriteNoPermission,
        "The store at \(path) cannot be written.",
        "Check the permissions of the file and of its folder, or open the store read-only."
      )
    }
    if error.isBusy {
      return make(
        .timeout,
        "Another process kept the store at \(path) locked.",
        "Try again when it is done, or raise NSPersistentStoreTimeoutOption."
      )
    }
    if error.isNotADatabase {
      return make(
        .fileReadCorrupt,
        "The file at \(path) is not a store, or it is damaged: \(error.message).",
        "Restore the file from a backup, or choose another place for the store."
      )
    }
    if error.cannotOpen {
      return make(
        .fileReadUnknown,
        "The store at \(path) cannot be opened: \(error.message).",
        "Check that the folder exists and may be read and written."
      )
    }
    return make(
      .sqlite,
      "SQLite failed while \(action) the store at \(path): \(error.message).",
      "Check the file with SQLite's integrity_check."
    )
  }
}
