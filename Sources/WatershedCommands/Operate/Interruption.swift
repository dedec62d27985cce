import ArgumentParser
import Dispatch
import Effects
import Foundation
import Synchronization

/// Ctrl-C: a command says what became of its work and ends with exit code 130.
final class Interruption: Sendable {
  private let state: State

  private final class State: @unchecked Sendable {
    // Unchecked: dispatch sources may be used from any thread, and do not say so.
    let source: any DispatchSourceSignal
    let hasCome = Atomic(false)

    init(_ source: any DispatchSourceSignal) { self.source = source }
  }

  /// Whether somebody pressed Ctrl-C since.
  var hasCome: Bool { state.hasCome.load(ordering: .acquiring) }

  /// Waits for the signal from now on, until it is told to stop.
  init(_ handle: @escaping @Sendable () -> Void = {}) {
    // Else the signal would end the process before anybody is told.
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

  /// Ctrl-C ends the process again, without a word.
  func stop() {
    state.source.cancel()
    signal(SIGINT, SIG_DFL)
  }

  private static let queue = DispatchQueue(label: "watershed interruption")

  /// Ends the process; what was on its way to a server may still be done there, and what a
  /// transaction had not finished is not done.
  static func end(_ what: String, next: String) -> Never {
    let failure = CommandFailure(
      "INTERRUPTED",
      what: what,
      why: "Ctrl-C came first; what was sent to the server before it may be done",
      next: next,
      exit: ExitCodes.interrupted
    )
    StandardError.write(failure.text)
    exit(ExitCodes.interrupted)
  }
}
