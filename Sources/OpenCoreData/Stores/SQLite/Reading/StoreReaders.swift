import Foundation
import Synchronization

/// Read connections to a store's file, each used by one reader at a time.
///
/// If none is idle, another is opened, so a nested read never waits for the outer one.
final class StoreReaders: Sendable {
  private struct Lent: @unchecked Sendable {
    // Unchecked: only the thread that took a connection out of the list uses it.
    let connection: StoreConnection
  }

  private struct State {
    var idle: [Lent] = []
    var isClosed = false
    /// The moment at which each connection in use was lent.
    var lent: [ObjectIdentifier: Int] = [:]
    var moment = 0

    mutating func note(_ connection: ObjectIdentifier) {
      moment += 1
      lent[connection] = moment
    }

    mutating func takeBack(_ one: Lent) {
      lent[ObjectIdentifier(one.connection)] = nil
      if !isClosed, idle.count < StoreReaders.idleLimit { idle.append(one) }
    }
  }

  private let state = Mutex(State())
  private let open: @Sendable () throws -> StoreConnection

  /// The most idle connections that are kept; each costs a page cache and file handles.
  private static let idleLimit = 8

  init(open: @escaping @Sendable () throws -> StoreConnection) {
    self.open = open
  }

  /// Returns nil once the readers are closed.
  func read<Result>(_ body: (StoreConnection) throws -> Result) throws -> Result? {
    let (taken, isClosed) = state.withLock { ($0.idle.popLast(), $0.isClosed) }
    guard !isClosed else { return nil }
    let lent = try taken ?? Lent(connection: open())
    let identifier = ObjectIdentifier(lent.connection)
    state.withLock { $0.note(identifier) }
    defer { state.withLock { $0.takeBack(lent) } }
    return try body(lent.connection)
  }

  /// The current moment, for ``isDone(before:)``.
  var moment: Int { state.withLock { $0.moment } }

  /// Whether all reads have ended that were in progress at a moment: none sees rows that were
  /// replaced then.
  func isDone(before moment: Int) -> Bool {
    state.withLock { $0.lent.values.allSatisfy { $0 > moment } }
  }

  /// A connection that the caller keeps until it returns it; nil once the readers are closed.
  func take() throws -> StoreConnection? {
    let (taken, isClosed) = state.withLock { ($0.idle.popLast(), $0.isClosed) }
    guard !isClosed else { return nil }
    let connection = try taken?.connection ?? open()
    let identifier = ObjectIdentifier(connection)
    state.withLock { $0.note(identifier) }
    return connection
  }

  /// Returns a connection to the idle ones.
  func giveBack(_ connection: StoreConnection) {
    let lent = Lent(connection: connection)
    state.withLock { $0.takeBack(lent) }
  }

  /// Removes a connection that will not be returned.
  func lose(_ connection: StoreConnection) {
    let identifier = ObjectIdentifier(connection)
    state.withLock { $0.lent[identifier] = nil }
  }

  /// Closes the idle connections, and each of the others when its read ends.
  func close() {
    let closing = state.withLock { state in
      state.isClosed = true
      defer { state.idle.removeAll() }
      return state.idle
    }
    _ = closing
  }
}
