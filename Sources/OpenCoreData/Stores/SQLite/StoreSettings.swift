import Foundation
import WatershedSQLite

/// The options of a store, read once.
struct StoreSettings: Sendable {
  let isReadOnly: Bool
  let wantsHistory: Bool
  /// Whether the history option is present and false.
  let historyIsRefused: Bool
  let ignoresVersions: Bool
  let busyTimeout: Double
  private let pragmas: [(name: String, value: String)]
  private let analyzes: Bool
  private let vacuums: Bool

  /// Seconds to wait for the lock of another process, as Core Data documents it; a save holds it for
  /// much less, an import or a migration perhaps not.
  static let defaultBusyTimeout = 240.0

  /// Kibibytes of pages that the writing connection caches at most.
  private static let writerCache = 8192

  init(options: [AnyHashable: Any]) {
    isReadOnly = NSPersistentStore.flag(NSReadOnlyPersistentStoreOption, in: options)
    wantsHistory = NSPersistentStore.flag(NSPersistentHistoryTrackingKey, in: options)
    historyIsRefused = options[NSPersistentHistoryTrackingKey] != nil && !wantsHistory
    ignoresVersions = NSPersistentStore.flag(
      NSIgnorePersistentStoreVersioningOption,
      in: options
    )
    analyzes = NSPersistentStore.flag(NSSQLiteAnalyzeOption, in: options)
    vacuums = NSPersistentStore.flag(NSSQLiteManualVacuumOption, in: options)
    switch options[NSPersistentStoreTimeoutOption] {
    case let value as Double: busyTimeout = value
    case let value as NSNumber: busyTimeout = value.doubleValue
    case let value as Int: busyTimeout = Double(value)
    default: busyTimeout = Self.defaultBusyTimeout
    }
    pragmas = Self.pragmas(in: options[NSSQLitePragmasOption])
  }

  func apply(to connection: SQLiteConnection, isWriter: Bool) throws {
    if isWriter {
      let journal = pragmas.first { $0.name == "journal_mode" }?.value ?? "WAL"
      try connection.execute("PRAGMA journal_mode = \(journal)")
    }
    // In WAL mode a commit survives a crash of the process; a power failure may lose the last
    // commits, but never damages the file
    // (sqlite.org/pragma.html#pragma_synchronous).
    try connection.execute("PRAGMA synchronous = NORMAL")
    // Room for the pages that a save of thousands of rows reads before it changes them; in KiB.
    if isWriter { try connection.execute("PRAGMA cache_size = -\(Self.writerCache)") }
    for (name, value) in pragmas where name != "journal_mode" {
      try connection.execute("PRAGMA \(name) = \(value)")
    }
    guard isWriter else { return }
    if vacuums { try connection.execute("VACUUM") }
    if analyzes { try connection.execute("ANALYZE") }
  }

  /// Pragmas are inserted into SQL as text, so only identifiers and numbers are accepted.
  private static func pragmas(in option: Any?) -> [(String, String)] {
    guard let option = option as? [AnyHashable: Any] else { return [] }
    return option.compactMap { key, value -> (String, String)? in
      guard let name = key.base as? String else { return nil }
      let text = "\(value)"
      let isPlain = (name + text).allSatisfy { $0.isLetter || $0.isNumber || "_-.".contains($0) }
      return isPlain && !text.isEmpty ? (name.lowercased(), text) : nil
    }
    .sorted { $0.0 < $1.0 }
  }
}
