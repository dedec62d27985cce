import Foundation

extension Observation {
  /// An observation for an object that was added by `addObserver`.
  ///
  /// Neither the observer nor the observed object is kept alive.
  convenience init(
    of observed: NSObject,
    by observer: NSObject,
    keyPath: String,
    options: NSKeyValueObservingOptions,
    context: UnsafeMutableRawPointer?,
    reader: ((NSObject) -> Any?)? = nil
  ) {
    guard observer is any NSKeyValueObserver else {
      fatalError(
        "\(type(of: observer)) cannot observe '\(keyPath)': on Linux an observer conforms to "
          + "NSKeyValueObserver."
      )
    }
    self.init(
      keyPath: keyPath,
      options: options,
      context: context,
      observer: observer,
      reader: reader
    ) { [weak observer, weak observed] change in
      guard let observer = observer as? any NSKeyValueObserver, let observed else { return }
      observer.observeValue(forKeyPath: keyPath, of: observed, change: change, context: context)
    }
  }

  /// Stops the program, as Core Data does, when an observer is removed that was never added.
  static func stopForUnknown(
    _ observer: NSObject,
    keyPath: String,
    of observed: NSObject
  ) -> Never {
    fatalError(
      "Cannot remove an observer <\(type(of: observer)) \(NSManagedObject.address(of: observer))> "
        + "for the key path \"\(keyPath)\" from <\(type(of: observed)) "
        + "\(NSManagedObject.address(of: observed))> because it is not registered as an observer."
    )
  }
}
