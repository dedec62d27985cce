#if !canImport(ObjectiveC)
import Foundation
import Synchronization

extension NotificationCenter {
  /// Calls a closure at each notification for as long as the observer exists.
  ///
  /// It stands in for `addObserver(_:selector:name:object:)`, which needs Objective-C: it does not retain
  /// the observer, calls on the thread that posts, and ends with `removeObserver(_:)`. An observer's method
  /// is called by `center.addObserver(self, name: name, object: context) { $0.didSave($1) }`.
  public func addObserver<Observer: AnyObject>(
    _ observer: Observer,
    name: Notification.Name?,
    object: Any?,
    calling body: @escaping (Observer, Notification) -> Void
  ) {
    let registration = ObserverRegistration(
      center: self,
      observer: observer,
      name: name,
      object: object.map { ObjectIdentifier($0 as AnyObject) }
    ) { observer, notification in
      if let observer = observer as? Observer { body(observer, notification) }
    }
    registration.token = addObserver(forName: name, object: object, queue: nil) { notification in
      registration.call(notification)
    }
    ObserverRegistration.add(registration, of: ObjectIdentifier(observer))
  }

  /// Ends the calls to an observer, or the observation that a token stands for.
  public func removeObserver(_ observer: AnyObject) {
    ObserverRegistration.remove(of: ObjectIdentifier(observer)) { $0.center === self }
    removeObserver(observer as Any)
  }

  /// Ends the calls to an observer for notifications of a name and an object; nil stands for all.
  public func removeObserver(_ observer: AnyObject, name: Notification.Name?, object: Any?) {
    let identity = object.map { ObjectIdentifier($0 as AnyObject) }
    ObserverRegistration.remove(of: ObjectIdentifier(observer)) {
      $0.center === self && (name == nil || $0.name == name)
        && (identity == nil || $0.object == identity)
    }
    removeObserver(observer as Any, name: name, object: object)
  }
}

/// An observer and what it is called for.
private final class ObserverRegistration: @unchecked Sendable {
  // Unchecked: only `token` changes, before the registration is shared; what `body` does is the app's
  // to synchronize, as with selectors.
  let center: NotificationCenter
  let name: Notification.Name?
  let object: ObjectIdentifier?
  var token: (any NSObjectProtocol)?
  private let identity: ObjectIdentifier
  private weak var observer: AnyObject?
  private let body: (AnyObject, Notification) -> Void

  private static let registrations = Mutex<[ObjectIdentifier: [ObserverRegistration]]>([:])

  init(
    center: NotificationCenter,
    observer: AnyObject,
    name: Notification.Name?,
    object: ObjectIdentifier?,
    body: @escaping (AnyObject, Notification) -> Void
  ) {
    self.center = center
    self.identity = ObjectIdentifier(observer)
    self.observer = observer
    self.name = name
    self.object = object
    self.body = body
  }

  func call(_ notification: Notification) {
    guard let observer else {
      Self.remove(of: identity) { $0 === self }
      return
    }
    body(observer, notification)
  }

  private func end() {
    if let token { center.removeObserver(token as Any) }
  }

  static func add(_ registration: ObserverRegistration, of observer: ObjectIdentifier) {
    // Another object may have been at the same address.
    remove(of: observer) { $0.observer == nil }
    registrations.withLock { $0[observer, default: []].append(registration) }
  }

  static func remove(
    of observer: ObjectIdentifier,
    where isRemoved: (ObserverRegistration) -> Bool
  ) {
    let removed = registrations.withLock { registrations in
      let known = registrations[observer] ?? []
      let kept = known.filter { !isRemoved($0) }
      registrations[observer] = kept.isEmpty ? nil : kept
      return known.filter(isRemoved)
    }
    for registration in removed { registration.end() }
  }
}
#endif
