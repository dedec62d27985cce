import Foundation

/// The observers of a context, and the values that they were last notified of.
///
/// Only the property `hasChanges` of a context is observable, as Core Data documents.
final class ContextObservers {
  private unowned let context: NSManagedObjectContext
  private var observations: [Observation] = []
  private var hasChanges: Bool

  init(_ context: NSManagedObjectContext) {
    self.context = context
    hasChanges = context.hasUnsavedChanges
  }

  func add(_ observation: Observation) {
    observations.append(observation)
    observation.sendInitial(of: context)
  }

  func remove(_ observation: Observation) {
    observations.removeAll { $0 === observation }
    if observations.isEmpty { context.observers = nil }
  }

  /// The observer's registration for a key path, the newest one first.
  func registration(
    of observer: NSObject,
    keyPath: String,
    context: UnsafeMutableRawPointer??
  ) -> Observation? {
    observations.last {
      $0.observer === observer && $0.keyPath == keyPath
        && (context == nil || $0.context == context.flatMap { $0 })
    }
  }

  /// Notifies observers if the context has unsaved changes and had none, or the other way.
  func noteHasChanges() {
    let now = context.hasUnsavedChanges
    guard now != hasChanges else { return }
    let old = NSNumber(value: hasChanges)
    hasChanges = now
    for observation in observations where observation.keyPath == "hasChanges" {
      observation.willChange(context, .setting, old: old)
      observation.didChange(context, .setting)
    }
  }
}
