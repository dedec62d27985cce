import Foundation
import Synchronization
import WatershedSQLite

/// The model that a store's file was written with, as far as an open store depends on it.
struct StoredModel: Equatable, Sendable {
  /// The version hashes of the entities.
  let hashes: [String: Data]
  /// The entities' numbers, which all rows and the history contain.
  let numbers: [String: Int64]
  /// The metadata of the file, and SQLite's count of changes of its tables: while both are equal,
  /// so is the rest.
  let version: Version

  struct Version: Equatable, Sendable {
    let metadata: Data
    let schema: Int64
  }

  static func == (left: StoredModel, right: StoredModel) -> Bool {
    left.hashes == right.hashes && left.numbers == right.numbers
  }

  /// Reads the file unless it has a known version; nil if it has.
  init?(_ connection: SQLiteConnection, unless known: Version?) throws {
    let metadata = try connection.query("SELECT Z_PLIST FROM Z_METADATA") { $0.blob(0) }.first
    guard case .integer(let schema)? = try connection.scalar("PRAGMA schema_version") else {
      return nil
    }
    version = Version(metadata: metadata ?? Data(), schema: schema)
    if version == known { return nil }
    hashes =
      try StoreMetadata.read(connection).flatMap {
        NSManagedObjectModel.versionHashes(inStoreMetadata: $0.metadata)
      } ?? [:]
    let numbers = try connection.query(
      "SELECT Z_NAME, Z_ENT FROM Z_PRIMARYKEY WHERE Z_ENT < ?",
      [.integer(Int64(ExistingTables.firstReservedNumber))]
    ) { ($0.text(0), $0.int64(1)) }
    self.numbers = Dictionary(numbers, uniquingKeysWith: { first, _ in first })
  }
}

/// Detects that another coordinator or process has migrated a store's file while it is open here.
///
/// A migration is a commit like any other to SQLite: statements of the former model would run on
/// the tables of the new one, in which an entity may have another number. Rows would be written
/// under other entities, and deletions recorded for objects that exist.
final class StoredModelGuard: Sendable {
  private struct State {
    var opened: StoredModel?
    var verified: StoredModel.Version?
  }

  private let state = Mutex(State())
  private let migrated = Atomic(false)

  /// Whether the file has been found to have another model than when the store was opened.
  var isMigrated: Bool { migrated.load(ordering: .acquiring) }

  /// Notes the model of the file at the opening; false if it has other version hashes than those
  /// that the store was opened with: it has been migrated in between.
  func open(_ connection: SQLiteConnection, hashes: [String: Data]) throws -> Bool {
    guard let found = try StoredModel(connection, unless: nil) else { return true }
    guard found.hashes == hashes else {
      migrated.store(true, ordering: .releasing)
      return false
    }
    state.withLock { $0 = State(opened: found, verified: found.version) }
    return true
  }

  /// Whether the file, as the connection reads it, has the model with which the store was opened.
  func verify(_ connection: SQLiteConnection) throws -> Bool {
    if isMigrated { return false }
    let verified = state.withLock { $0.verified }
    guard let found = try StoredModel(connection, unless: verified) else { return true }
    let isSame = state.withLock { state in
      guard let opened = state.opened, opened != found else {
        state.verified = found.version
        return true
      }
      return false
    }
    if !isSame { migrated.store(true, ordering: .releasing) }
    return isSame
  }
}

extension SQLiteStore {
  /// Throws if the file, as the connection reads it, was migrated after the store was opened.
  func requireOpenedModel(_ connection: StoreConnection) throws {
    guard try !isInMemory && !storedModel.verify(connection.connection) else { return }
    cache.removeAll()
    throw migratedError
  }

  /// Throws if the file was found to be migrated.
  func requireOpenedModel() throws {
    if storedModel.isMigrated { throw migratedError }
  }

  var migratedError: StoreError {
    StoreError(
      .incompatibleVersionHash,
      "The store at \(path) was migrated to another version of its model while it was open, so it "
        + "is neither read nor written with the former one. Unsaved changes stay in their contexts.",
      remedy: "Remove the store from its coordinator, and add it to one that has the new model.",
      context: [NSFilePathErrorKey: path]
    )
  }
}
