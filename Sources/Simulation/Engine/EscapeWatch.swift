import Foundation
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Detects work that leaves the scheduler: a task that the thread of a run puts on the concurrent pool.
///
/// Such a task would run on another thread at a time that no seed chooses. The Swift runtime has a hook for
/// every job that goes to its pool; the watch counts those of its own thread and keeps where they came from.
package enum EscapeWatch {
  private typealias Original = @convention(c) (OpaquePointer) -> Void
  private typealias Hook = @convention(c) (OpaquePointer, Original) -> Void

  private struct State {
    var isInstalled = false
    var thread: pthread_t?
    var escapes: [String] = []
  }

  private static let state = Mutex(State())
  /// Frames of a call stack that name an escape.
  private static let frames = 24

  /// Watches the calling thread while the body runs; returns the call stacks of what escaped.
  static func watching<Result>(_ body: () -> Result) -> (result: Result, escapes: [String]) {
    install()
    state.withLock { state in
      state.thread = pthread_self()
      state.escapes = []
    }
    let result = body()
    let escapes = state.withLock { state in
      state.thread = nil
      defer { state.escapes = [] }
      return state.escapes
    }
    return (result, escapes)
  }

  private static func install() {
    let isFirst = state.withLock { state in
      defer { state.isInstalled = true }
      return !state.isInstalled
    }
    guard isFirst, let program = dlopen(nil, RTLD_NOW),
      let address = dlsym(program, "swift_task_enqueueGlobal_hook")
    else { return }
    let hook: Hook = { job, original in
      EscapeWatch.note()
      original(job)
    }
    address.assumingMemoryBound(to: Hook?.self).pointee = hook
  }

  private static func note() {
    let isOwn = state.withLock { state in
      guard let thread = state.thread else { return false }
      return pthread_equal(thread, pthread_self()) != 0
    }
    guard isOwn else { return }
    let stack = Thread.callStackSymbols.dropFirst(2).prefix(frames).joined(separator: "\n")
    state.withLock { $0.escapes.append(stack) }
  }
}
