import Dispatch

/// Calls a closure whenever a file descriptor is readable, until it is cancelled.
///
/// Only for adapters to the outside: it does not use a virtual clock.
public final class DescriptorWatch: @unchecked Sendable {
  // Unchecked: a dispatch source may be cancelled from any thread.
  private let source: any DispatchSourceRead

  /// Starts to watch; the descriptor must stay open until `cancel` has returned.
  public init(_ descriptor: Int32, _ body: @escaping @Sendable () -> Void) {
    source = DispatchSource.makeReadSource(fileDescriptor: descriptor)
    source.setEventHandler(handler: body)
    source.activate()
  }

  /// Ends the calls.
  public func cancel() { source.cancel() }
}
