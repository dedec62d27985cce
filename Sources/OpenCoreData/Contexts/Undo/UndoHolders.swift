import Foundation

/// How many undo steps may bring each object back.
///
/// An object whose deletion was saved keeps its relationships for that. Deleted objects that refer to
/// each other are known to no context, so the last step that held them cuts their relationships, or
/// they would never be freed.
final class UndoHolders: @unchecked Sendable {
  // Sendable: `lock` guards the counts. An undo manager may drop its steps on any thread.

  private let lock = NSLock()
  private var counts: [ObjectIdentifier: Int] = [:]

  func hold(_ objects: [NSManagedObject]) {
    lock.withLock {
      for object in objects { counts[ObjectIdentifier(object), default: 0] += 1 }
    }
  }

  func release(_ objects: [NSManagedObject]) {
    var free: [NSManagedObject] = []
    lock.withLock {
      for object in objects {
        let count = (counts[ObjectIdentifier(object)] ?? 1) - 1
        counts[ObjectIdentifier(object)] = count > 0 ? count : nil
        if count <= 0 { free.append(object) }
      }
    }
    for object in free where object.context == nil { object.cutRelationships() }
  }

  func holds(_ object: NSManagedObject) -> Bool {
    lock.withLock { counts[ObjectIdentifier(object)] != nil }
  }
}
