import Foundation

/// Who observes a context, and what they were told last.
///
/// Of a context's properties `hasChanges` alone announces its changes, as Core Data documents.
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

  /// Tells of the context's changes where there are some now and were none, or the other way.
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
