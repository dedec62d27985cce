import CloudKitWebServices
import Foundation
import OpenCloudKit
import Synchronization

/// The faults between one device and the server.
///
/// ```swift
/// // The server executes the export, and its reply is lost: the next sync must not repeat it.
/// phone.faults.add(.loseReply, to: "records/modify")
/// try phone.save { context in
///   let post = Post(context: context)
///   post.title = "Once"
/// }
/// try? await phone.sync()
/// try await phone.sync()
/// try await laptop.sync()
/// ```
public final class FaultPlan: Sendable {
  /// One fault of a request.
  public enum Fault: Hashable, Sendable {
    /// The request is lost.
    case loseRequest
    /// The server executes the request, but the reply is lost.
    case loseReply
    /// The server replies with this status, and does nothing.
    case fail(status: Int)
    /// The request arrives after this many seconds, unless the device is offline by then.
    case delay(seconds: Double)
  }

  private struct Rule {
    var verb: String
    var fault: Fault
    var count: Int
    var skips: Int
  }

  private struct State {
    var isOnline = true
    var rules: [Rule] = []
    var requests: [String] = []
    var waiting: [Int: CheckedContinuation<Void, Never>] = [:]
    var ended: Set<Int> = []
    var nextWaiter = 0
  }

  private let state = Mutex(State())

  /// Creates a plan without faults.
  public init() {}

  /// Whether the device reaches the server; setting it to false fails requests that wait for a
  /// reply.
  public var isOnline: Bool {
    get { state.withLock { $0.isOnline } }
    set {
      let broken = state.withLock { state -> [CheckedContinuation<Void, Never>] in
        state.isOnline = newValue
        guard !newValue else { return [] }
        defer { state.waiting = [:] }
        return Array(state.waiting.values)
      }
      for continuation in broken { continuation.resume() }
    }
  }

  /// Adds a fault to the next requests of a verb, such as `records/modify`.
  public func add(_ fault: Fault, to verb: String, count: Int = 1, skipping skips: Int = 0) {
    state.withLock { state in
      state.rules.append(Rule(verb: verb, fault: fault, count: count, skips: skips))
    }
  }

  /// Removes the faults that have not happened.
  public func clear() { state.withLock { $0.rules = [] } }

  /// The verbs of the requests that were sent, in order.
  public var requests: [String] { state.withLock { $0.requests } }

  /// Forgets the requests that were sent.
  public func forgetRequests() { state.withLock { $0.requests = [] } }

  func fault(for path: String) -> Fault? {
    state.withLock { state in
      state.requests.append(Self.verb(of: path))
      for index in state.rules.indices where path.contains(state.rules[index].verb) {
        if state.rules[index].skips > 0 {
          state.rules[index].skips -= 1
          continue
        }
        let fault = state.rules[index].fault
        state.rules[index].count -= 1
        if state.rules[index].count == 0 { state.rules.remove(at: index) }
        return fault
      }
      return nil
    }
  }

  private static func verb(of path: String) -> String {
    let path = path.split(separator: "?").first.map(String.init) ?? path
    return path.split(separator: "/").suffix(2).joined(separator: "/")
  }

  /// Returns when the device goes offline, or the task is cancelled.
  func waitUntilOffline() async {
    let number = state.withLock { state in
      state.nextWaiter += 1
      return state.nextWaiter
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isOver = state.withLock { state -> Bool in
          if state.ended.remove(number) != nil || !state.isOnline { return true }
          state.waiting[number] = continuation
          return false
        }
        if isOver { continuation.resume() }
      }
    } onCancel: {
      let continuation = state.withLock { state -> CheckedContinuation<Void, Never>? in
        guard let continuation = state.waiting.removeValue(forKey: number) else {
          state.ended.insert(number)
          return nil
        }
        return continuation
      }
      continuation?.resume()
    }
    state.withLock { _ = $0.ended.remove(number) }
  }
}
