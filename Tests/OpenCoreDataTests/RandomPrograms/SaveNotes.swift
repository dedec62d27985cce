import Foundation
import OpenCoreData

/// The objects in the last save notification of a context.
final class SaveNotes: @unchecked Sendable {
  // Sendable: saves post on the thread of the program.
  var last:
    (inserted: Set<NSManagedObject>, updated: Set<NSManagedObject>, deleted: Set<NSManagedObject>)?
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
          self?.last = (
            objects(NSInsertedObjectsKey), objects(NSUpdatedObjectsKey),
            objects(NSDeletedObjectsKey)
          )
          for other in others { other.mergeChanges(fromContextDidSave: note) }
        }
      )
    }
  }

  deinit {
    for token in tokens { NotificationCenter.default.removeObserver(token) }
  }
}
