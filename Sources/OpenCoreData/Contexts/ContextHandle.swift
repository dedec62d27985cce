import CSwiftRuntime
import Synchronization

/// Finds a context that it does not keep alive.
///
/// In place of a weak reference, as ``ObjectRegistry`` is: one weak reference anywhere makes every
/// retain and release of its object slower, and a context is retained at every fault.
final class ContextHandle: Sendable {
  private struct Address: @unchecked Sendable {
    // Unchecked: an address, of use only while the context is there.
    var pointer: UnsafeMutableRawPointer?
  }

  private let address = Mutex(Address())

  /// Nil once the context is going.
  var context: NSManagedObjectContext? {
    address.withLock { address in
      guard let pointer = address.pointer, let held = swift_tryRetain(pointer) else { return nil }
      return Unmanaged<NSManagedObjectContext>.fromOpaque(held).takeRetainedValue()
    }
  }

  func hold(_ context: NSManagedObjectContext) {
    address.withLock { $0.pointer = Unmanaged.passUnretained(context).toOpaque() }
  }

  /// Called when the context goes.
  func clear() {
    address.withLock { $0.pointer = nil }
  }
}
