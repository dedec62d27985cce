import Foundation
import Synchronization

/// Read connections to a store's file, each lent to one reader at a time.
///
/// A reader that finds none free opens another, so a read inside a read never waits for itself.
final class StoreReaders: Sendable {
  private struct Lent: @unchecked Sendable {
    // Unchecked: a connection in the list belongs to nobody, one taken from it to its taker.
    let connection: StoreConnection
  }

  private struct State {
    var idle: [Lent] = []
    var isClosed = false
    /// When each connection that is out was lent.
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

  /// Bounds the connections that are kept; each costs a page cache and file handles.
  private static let idleLimit = 8

  init(open: @escaping @Sendable () throws -> StoreConnection) {
    self.open = open
  }

  /// Nil once the readers are closed.
  func read<Result>(_ body: (StoreConnection) throws -> Result) throws -> Result? {
    let (taken, isClosed) = state.withLock { ($0.idle.popLast(), $0.isClosed) }
    guard !isClosed else { return nil }
    let lent = try taken ?? Lent(connection: open())
    let identifier = ObjectIdentifier(lent.connection)
    state.withLock { $0.note(identifier) }
    defer { state.withLock { $0.takeBack(lent) } }
    return try body(lent.connection)
  }

  /// Now, for ``isDone(before:)``.
  var moment: Int { state.withLock { $0.moment } }

  /// Whether all readers are done that were at work at a moment: none sees what was replaced then.
  func isDone(before moment: Int) -> Bool {
    state.withLock { $0.lent.values.allSatisfy { $0 > moment } }
  }

  /// A connection that its taker keeps until it is given back; nil once the readers are closed.
  func take() throws -> StoreConnection? {
    let (taken, isClosed) = state.withLock { ($0.idle.popLast(), $0.isClosed) }
    guard !isClosed else { return nil }
    let connection = try taken?.connection ?? open()
    let identifier = ObjectIdentifier(connection)
    state.withLock { $0.note(identifier) }
    return connection
  }

  /// Takes a connection back.
  func giveBack(_ connection: StoreConnection) {
    let lent = Lent(connection: connection)
    state.withLock { $0.takeBack(lent) }
  }

  /// A connection that was taken does not come back.
  func lose(_ connection: StoreConnection) {
    let identifier = ObjectIdentifier(connection)
    state.withLock { $0.lent[identifier] = nil }
  }

  /// Closes the idle connections, and the others when their readers are done.
  func close() {
    let closing = state.withLock { state in
      state.isClosed = true
      defer { state.idle.removeAll() }
      return state.idle
    }
    _ = closing
  }
}
