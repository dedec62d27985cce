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
    defer {
      state.withLock { state in
        if !state.isClosed, state.idle.count < Self.idleLimit { state.idle.append(lent) }
      }
    }
    return try body(lent.connection)
  }

  /// A connection that its taker keeps until it is given back; nil once the readers are closed.
  func take() throws -> StoreConnection? {
    let (taken, isClosed) = state.withLock { ($0.idle.popLast(), $0.isClosed) }
    guard !isClosed else { return nil }
    return try taken?.connection ?? open()
  }

  /// Takes a connection back.
  func giveBack(_ connection: StoreConnection) {
    let lent = Lent(connection: connection)
    state.withLock { state in
      if !state.isClosed, state.idle.count < Self.idleLimit { state.idle.append(lent) }
    }
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
