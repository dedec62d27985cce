import CloudKitWebServices
import Foundation
import Synchronization

/// Recently used signatures, with the replies to their requests.
///
/// A signature is valid for one request. A repeated request, which may be a network retry, gets the
/// first reply; nothing is executed or read twice.
final class SignatureLedger: Sendable {
  enum Claim {
    /// The signature is new; the caller passes the reply to `settle`.
    case first
    case repeated(WebServiceResponse)
    /// Used before, and the reply was too large to keep.
    case used
    /// The first request is still running.
    case running
    /// The limit of signatures is reached.
    case full
  }

  private struct Entry {
    var expires: Int64
    var reply: WebServiceResponse?
    var isRunning: Bool
  }

  private struct State {
    var entries: [String: Entry] = [:]
    /// Names in the order of their claims, for eviction.
    var order: [(name: String, expires: Int64)] = []
    var head = 0
    var bytes = 0
  }

  /// Names must be kept while their date is valid; this limits their memory.
  private static let limit = 200_000
  /// The limit of all kept replies, in bytes.
  private static let replyLimit = 32 * 1_048_576
  /// A larger reply is not kept.
  private static let largestReply = 2 * 1_048_576

  private let state = Mutex(State())

  func claim(_ name: String, now: Int64, expires: Int64) -> Claim {
    state.withLock { state in
      Self.forget(&state, now)
      if let known = state.entries[name] {
        if known.isRunning { return .running }
        return known.reply.map { .repeated($0) } ?? .used
      }
      guard state.entries.count < Self.limit else { return .full }
      state.entries[name] = Entry(expires: expires, reply: nil, isRunning: true)
      state.order.append((name, expires))
      return .first
    }
  }

  /// Forgets a signature whose request was refused for a transient reason.
  ///
  /// The request is executed when it is repeated. The storage detects changes that it wrote
  /// nevertheless.
  func release(_ name: String) {
    state.withLock { state in
      guard state.entries[name]?.isRunning == true else { return }
      state.entries[name] = nil
    }
  }

  func settle(_ name: String, _ reply: WebServiceResponse) {
    state.withLock { state in
      guard state.entries[name] != nil else { return }
      let fits =
        reply.body.count <= Self.largestReply && state.bytes + reply.body.count <= Self.replyLimit
      state.entries[name]?.isRunning = false
      guard fits else { return }
      state.entries[name]?.reply = reply
      state.bytes += reply.body.count
    }
  }

  private static func forget(_ state: inout State, _ now: Int64) {
    while state.head < state.order.count, state.order[state.head].expires < now {
      if let evicted = state.entries.removeValue(forKey: state.order[state.head].name) {
        state.bytes -= evicted.reply?.body.count ?? 0
      }
      state.head += 1
    }
    if state.head > 1024, state.head * 2 > state.order.count {
      state.order.removeFirst(state.head)
      state.head = 0
    }
  }
}
