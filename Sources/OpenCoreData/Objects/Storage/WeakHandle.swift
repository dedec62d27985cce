import CSwiftRuntime
import Synchronization

/// Finds an object without keeping it alive: the object holds the handle and clears it in `deinit`.
///
/// Used in place of a weak reference, as ``ObjectRegistry`` is: one weak reference anywhere makes
/// every retain and release of its object slower. A context is retained at every fault, and an
/// entity for every object that is made.
final class WeakHandle<Object: AnyObject>: Sendable {
  private struct Address: @unchecked Sendable {
    // Unchecked: an address that is used only while the object is alive.
    var pointer: UnsafeMutableRawPointer?
  }

  private let address = Mutex(Address())

  /// Nil once the object is being deallocated.
  var object: Object? {
    address.withLock { address in
      guard let pointer = address.pointer, let held = swift_tryRetain(pointer) else { return nil }
      return Unmanaged<Object>.fromOpaque(held).takeRetainedValue()
    }
  }

  func hold(_ object: Object) {
    address.withLock { $0.pointer = Unmanaged.passUnretained(object).toOpaque() }
  }

  /// Called when the object is deallocated.
  func clear() {
    address.withLock { $0.pointer = nil }
  }
}
