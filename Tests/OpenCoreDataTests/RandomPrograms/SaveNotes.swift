import Foundation
import OpenCoreData

/// The objects of a save.
struct NotedObjects: Equatable {
  var inserted: Set<NSManagedObject> = []
  var updated: Set<NSManagedObject> = []
  var deleted: Set<NSManagedObject> = []
}

/// An object that notes the states that it reads in `didSave()`.
final class ProgramObject: NSManagedObject {
  private static let key = "saved"

  override func didSave() {
    super.didSave()
    guard let notes = managedObjectContext?.userInfo else { return }
    var saved = notes[Self.key] as? NotedObjects ?? NotedObjects()
    if isInserted { saved.inserted.insert(self) }
    if isUpdated { saved.updated.insert(self) }
    if isDeleted { saved.deleted.insert(self) }
    notes[Self.key] = saved
  }

  /// Returns the objects that have read each state in a context since the last call.
  static func takeNotes(of context: NSManagedObjectContext) -> NotedObjects {
    defer { context.userInfo.removeObject(forKey: key) }
    return context.userInfo[key] as? NotedObjects ?? NotedObjects()
  }
}

/// The objects in the last save notification of a context.
final class SaveNotes: @unchecked Sendable {
  // Sendable: saves post on the thread of the program.
  var last: NotedObjects?
  private var tokens: [any NSObjectProtocol] = []

  init(_ contexts: [NSManagedObjectContext], merges: Bool) {
    for context in contexts {
      let others = merges ? contexts.filter { $0 !== context } : []
      tokens.append(
        NotificationCenter.default.addObserver(
          forName: .NSManagedObjectContextDidSave,
          object: context,
          queue: nil
        ) { [weak self] note in
          func objects(_ key: String) -> Set<NSManagedObject> {
            note.userInfo?[key] as? Set<NSManagedObject> ?? []
          }
          self?.last = NotedObjects(
            inserted: objects(NSInsertedObjectsKey),
            updated: objects(NSUpdatedObjectsKey),
            deleted: objects(NSDeletedObjectsKey)
          )
          for other in others { other.mergeChanges(fromContextDidSave: note) }
        }
      )
    }
  }

  /// The objects that a context reports as inserted while a block runs.
  func received(by context: NSManagedObjectContext, _ body: () -> Void) -> Set<NSManagedObject> {
    nonisolated(unsafe) var received: Set<NSManagedObject> = []
    let token = NotificationCenter.default.addObserver(
      forName: .NSManagedObjectContextObjectsDidChange,
      object: context,
      queue: nil
    ) { note in
      received.formUnion(note.userInfo?[NSInsertedObjectsKey] as? Set<NSManagedObject> ?? [])
    }
    defer { NotificationCenter.default.removeObserver(token) }
    body()
    return received
  }

  deinit {
    for token in tokens { NotificationCenter.default.removeObserver(token) }
  }
}
