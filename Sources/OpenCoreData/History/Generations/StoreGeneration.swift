import Foundation
import Synchronization
import WatershedSQLite

/// A generation of a store: a connection with an open read transaction.
///
/// In WAL mode such a connection sees the commits before its first read and none after, and blocks
/// no writer (sqlite.org/isolation.html); `sqlite3_snapshot_open` would do the same, but the
/// system's library is built without it. Its rows are cached separately, since the store's cache
/// has newer ones.
///
/// The log can't be restarted while a generation reads it, so generations are limited in number and
/// by the size of the log; beyond a limit the oldest expires.
final class StoreGeneration: ForwardingRowStore, @unchecked Sendable {
  // Sendable: `lock` guards the connection; the rest is immutable or guards itself.

  let store: SQLiteStore
  private let lock = NSRecursiveLock()
  /// Nil once the generation has expired or its store was closed.
  private var connection: StoreConnection?
  private let cache = RowCache(byteLimit: 8 << 20)
  /// The size of the log when the generation was pinned.
  fileprivate let logStart: Int

  init(store: SQLiteStore, connection: StoreConnection, logStart: Int) {
    self.store = store
    self.connection = connection
    self.logStart = logStart
  }

  deinit {
    if let connection { store.giveBack(generation: connection) }
  }

  var isExpired: Bool { lock.withLock { connection == nil } }

  /// Ends the generation's transaction, so that the log can be restarted.
  func expire() {
    let taken = lock.withLock {
      defer { connection = nil }
      return connection
    }
    if let taken { store.giveBack(generation: taken) }
  }

  // MARK: Reading

  /// Returns nil if the generation has expired.
  ///
  /// It expires where another process has removed the file of a large value that the newest rows
  /// replace.
  private func read<Result>(_ body: (StoreConnection) throws -> Result) throws -> Result? {
    try lock.withLock {
      guard let connection else { return nil }
      do {
        return try store.translating("reading") {
          try connection.requiringFiles { try body(connection) }
        }
      } catch is MissingLargeValue {
        guard try store.findsFiles({ _ = try body($0) }) else {
          return try store.translating("reading") { try body(connection) }
        }
        expire()
        StoreLog.warning(
          "A query generation of \(store.path) has expired: another process has replaced a large "
            + "value, whose former file is gone."
        )
        return nil
      }
    }
  }

  func fetch(_ request: RowFetch) throws -> RowFetchResult {
    store.generations.enforceLimit(store)
    if let result = try read({ try store.fetch(request, from: $0) }) { return result }
    throw StoreError(
      .coreData,
      "The query generation that the context is pinned to has expired: the log of the store at "
        + "\(store.path) grew beyond what generations may hold, or another process replaced a large "
        + "value.",
      remedy: "Call setQueryGenerationFrom(_:) with the current generation and refresh the objects."
    ).nsError
  }

  // A fault can't fail, so after the generation has expired it reads the store's newest row.

  func row(_ reference: RowReference) throws -> RowAnswer {
    if let row = cache.row(reference) { return .row(row) }
    let read = try read { RowAnswer(try store.readRow(reference, from: $0)) }
    guard let answer = read else { return try store.row(reference) }
    if case .row(let row) = answer { cache.insert([row], readAt: cache.epoch) }
    return answer
  }

  func rows(_ references: [RowReference]) throws -> [RowReference: Row] {
    var found: [RowReference: Row] = [:]
    var unknown: [RowReference] = []
    for (reference, row) in zip(references, cache.rows(references)) {
      if let row { found[reference] = row } else { unknown.append(reference) }
    }
    guard !unknown.isEmpty else { return found }
    guard let read = try read({ try store.readRows(unknown, from: $0) }) else {
      return try store.rows(references)
    }
    cache.insert(read, readAt: cache.epoch)
    for row in read { found[row.reference] = row }
    return found
  }

  func destinations(
    of relationship: NSRelationshipDescription,
    from sources: [RowReference]
  ) throws -> [RowReference: [RowReference]] {
    try read { try store.readDestinations(of: relationship, from: sources, on: $0) }
      ?? store.destinations(of: relationship, from: sources)
  }

  func destinationLists(
    of relationship: NSRelationshipDescription,
    from sources: [RowReference]
  ) throws -> DestinationLists {
    try read { try store.readDestinationLists(of: relationship, from: sources, on: $0) }
      ?? store.destinationLists(of: relationship, from: sources)
  }

  func appendMembers(
    ofToMany index: Int,
    from source: RowReference,
    to members: inout [RowMember]
  ) throws {
    guard let relationship = layout(number: source.entityNumber)?.toManys[index].description else {
      return
    }
    let found = try destinations(of: relationship, from: [source])[source] ?? []
    let rows = try rows(found)
    for reference in found { members.append(RowMember(reference: reference, row: rows[reference])) }
  }

  func cachedRow(_ reference: RowReference) -> Row? { cache.row(reference) }

  /// The rows of a generation do not change.
  func forget(_ references: [RowReference]) {}
}

/// The existing generations of one store.
final class StoreGenerations: Sendable {
  private struct Held: Sendable {
    weak var generation: StoreGeneration?
  }

  private struct State: Sendable {
    var held: [Held] = []
    var logLimit = StoreGenerations.defaultLogLimit
  }

  private let state = Mutex(State())

  /// The most generations: each one costs a connection with its file handles and page cache.
  static let countLimit = 64
  /// The default limit of the log in bytes; a larger log slows every reader down.
  static let defaultLogLimit = 64 * 1024 * 1024

  /// How large the log may grow while generations are held, in bytes.
  var logLimit: Int {
    get { state.withLock { $0.logLimit } }
    set { state.withLock { $0.logLimit = newValue } }
  }

  /// Adds a generation; the oldest expires if there are too many.
  func hold(_ generation: StoreGeneration, of store: SQLiteStore) {
    let oldest = state.withLock { state in
      state.held.removeAll { $0.generation == nil }
      state.held.append(Held(generation: generation))
      guard state.held.count > Self.countLimit else { return nil as StoreGeneration? }
      return state.held.removeFirst().generation
    }
    guard let oldest else { return }
    oldest.expire()
    StoreLog.warning(
      "More than \(Self.countLimit) query generations of \(store.path) were held; the oldest has "
        + "expired. Release tokens and pinned contexts that are no longer needed."
    )
  }

  /// Expires the oldest generation if the log has grown too large.
  ///
  /// Called when the log may have grown; it returns at once without generations.
  func enforceLimit(_ store: SQLiteStore) {
    let limit = state.withLock { state in
      state.held.removeAll { $0.generation == nil }
      return state.held.isEmpty ? nil : state.logLimit
    }
    guard let limit else { return }
    let size = store.logSize
    let oldest = state.withLock { state -> StoreGeneration? in
      guard
        let place = state.held.firstIndex(where: { held in
          held.generation.map { size - $0.logStart > limit } ?? false
        })
      else { return nil }
      return state.held.remove(at: place).generation
    }
    guard let oldest else { return }
    oldest.expire()
    StoreLog.warning(
      "The log of \(store.path) has grown to \(size) bytes, by more than the \(limit) that a query "
        + "generation may hold; the oldest generation has expired."
    )
  }

  /// Expires all generations, before the store is closed.
  func expireAll() {
    let all = state.withLock { state in
      defer { state.held = [] }
      return state.held.compactMap(\.generation)
    }
    for generation in all { generation.expire() }
  }
}
