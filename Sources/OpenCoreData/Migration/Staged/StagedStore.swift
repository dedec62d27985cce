import Effects
import Foundation
import WatershedSQLite

/// A store through whose versions a staged migration leads: an SQLite file, or the file of an atomic
/// store.
protocol StagedStore {
  var type: String { get }
  var model: NSManagedObjectModel { get }
  var configuration: String? { get }
  var url: URL { get }
  var options: [AnyHashable: Any] { get }
  var effects: Effects { get }

  /// Runs a lightweight migration of the file at a URL, which may be a copy.
  func migrateInferred(
    from source: NSManagedObjectModel,
    to destination: NSManagedObjectModel,
    _ configuration: String?,
    at place: URL
  ) throws

  /// Passes the body the URL of a copy, and replaces the store by the copy afterwards.
  ///
  /// Nothing is done if an SQLite store does not have these hashes any more: another process has
  /// migrated it. Processes do not share the file of an atomic store.
  func replace(having hashes: [String: Data], _ body: (URL) throws -> Void) throws
}

extension StoreMigration: StagedStore {
  var type: String { NSSQLiteStoreType }

  func migrateInferred(
    from source: NSManagedObjectModel,
    to destination: NSManagedObjectModel,
    _ configuration: String?,
    at place: URL
  ) throws {
    try inPlace(
      from: source,
      to: destination,
      configuration,
      StoreFile.inspect(place),
      at: place
    )
  }

  func replace(having hashes: [String: Data], _ body: (URL) throws -> Void) throws {
    let replacement = StoreContentsReplacement(url: url, options: options, effects: effects)
    do {
      try replacement.run { current, copy in
        guard current.hashes == hashes else { return false }
        try StoreCopy.copy(url, to: copy, effects: effects)
        try body(copy)
        return true
      }
    } catch let error as StoreError {
      throw MigrationError.inPlace(error, at: url)
    } catch let error as SQLiteError {
      throw MigrationError.inPlace(error, at: url)
    }
  }
}

extension AtomicStoreMigration: StagedStore {
  func migrateInferred(
    from source: NSManagedObjectModel,
    to destination: NSManagedObjectModel,
    _ configuration: String?,
    at place: URL
  ) throws {
    let mapping = try inferredMapping(from: source, to: destination)
    try migrate(from: source, to: destination, configuration, by: mapping, at: place)
  }

  func replace(having hashes: [String: Data], _ body: (URL) throws -> Void) throws {
    let draft = StoreDraft(beside: url, effects: effects)
    defer { draft.remove() }
    try FileSystem.copy(url.path, over: draft.url.path)
    try body(draft.url)
    try FileSystem.move(draft.url.path, over: url.resolvingSymlinksInPath().path)
  }
}
