import Foundation

/// An object that is notified of changes by key path.
///
/// **Differs from Core Data:** on Apple's platforms every `NSObject` has
/// `observeValue(forKeyPath:of:change:context:)` and a subclass overrides it. A method cannot be
/// added to `NSObject` on Linux so that subclasses can override it. An observer conforms to this
/// protocol instead, and leaves out the word `override`. Managed objects conform already.
public protocol NSKeyValueObserver: NSObject {
  /// Called when the value at a key path changes.
  func observeValue(
    forKeyPath keyPath: String?,
    of object: Any?,
    change: [NSKeyValueChangeKey: Any]?,
    context: UnsafeMutableRawPointer?
  )
}

/// Keeps an observation alive; it ends when this object is deallocated, or by `invalidate()`.
public final class NSKeyValueObservation: NSObject {
  private var ending: (() -> Void)?

  init(ending: @escaping () -> Void) {
    self.ending = ending
    super.init()
  }

  deinit { end() }

  /// Ends the observation; calling it again does nothing.
  public func invalidate() { end() }

  private func end() {
    guard let ending else { return }
    self.ending = nil
    ending()
  }
}
