import Foundation

/// Counts the undo steps that may restore each object.
///
/// An object whose deletion was saved keeps its relationships for that. Deleted objects that
/// reference each other belong to no context, so the last step that holds them removes their
/// relationships; otherwise they would never be freed.
final class UndoHolders: @unchecked Sendable {
  // Sendable: `lock` guards the counts. An undo manager may release its steps on any thread.

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
