import CSwiftRuntime
import Synchronization

/// Finds an object that it does not keep alive: the object holds it, and tells it when it goes.
///
/// In place of a weak reference, as ``ObjectRegistry`` is: one weak reference anywhere makes every
/// retain and release of its object slower. A context is retained at every fault, and an entity for
/// every object that is made.
final class WeakHandle<Object: AnyObject>: Sendable {
  private struct Address: @unchecked Sendable {
    // Unchecked: an address, of use only while the object is there.
    var pointer: UnsafeMutableRawPointer?
  }

  private let address = Mutex(Address())

  /// Nil once the object is going.
  var object: Object? {
    address.withLock { address in
      guard let pointer = address.pointer, let held = swift_tryRetain(pointer) else { return nil }
      return Unmanaged<Object>.fromOpaque(held).takeRetainedValue()
    }
  }

  func hold(_ object: Object) {
    address.withLock { $0.pointer = Unmanaged.passUnretained(object).toOpaque() }
  }

  /// Called when the object goes.
  func clear() {
    address.withLock { $0.pointer = nil }
  }
}
