import ArgumentParser
import Dispatch
import Effects
import Foundation
import Synchronization

/// Handles Ctrl-C: a command reports the state of its work and ends with exit code 130.
final class Interruption: Sendable {
  private let state: State

  private final class State: @unchecked Sendable {
    // Unchecked: dispatch sources may be used on any thread, but are not declared Sendable.
    let source: any DispatchSourceSignal
    let hasCome = Atomic(false)

    init(_ source: any DispatchSourceSignal) { self.source = source }
  }

  /// Whether Ctrl-C was pressed since.
  var hasCome: Bool { state.hasCome.load(ordering: .acquiring) }

  /// Handles the signal until `stop()`.
  init(_ handle: @escaping @Sendable () -> Void = {}) {
    // Otherwise the signal would end the process before the handler is called.
    signal(SIGINT, SIG_IGN)
    let state = State(DispatchSource.makeSignalSource(signal: SIGINT, queue: Self.queue))
    state.source.setEventHandler { [weak state] in
      state?.hasCome.store(true, ordering: .releasing)
      handle()
    }
    self.state = state
    state.source.resume()
  }

  deinit { state.source.cancel() }

  /// Restores the default: Ctrl-C ends the process silently.
  func stop() {
    state.source.cancel()
    signal(SIGINT, SIG_DFL)
  }

  private static let queue = DispatchQueue(label: "watershed interruption")

  /// Ends the process; a request that was already sent may still be executed, and an incomplete
  /// transaction is rolled back.
  static func end(_ what: String, next: String) -> Never {
    let failure = CommandFailure(
      "INTERRUPTED",
      what: what,
      why: "interrupted by Ctrl-C; the server may have completed what was already sent",
      next: next,
      exit: ExitCodes.interrupted
    )
    StandardError.write(failure.text)
    TemporaryFolder.removeOwn()
    exit(ExitCodes.interrupted)
  }
}
