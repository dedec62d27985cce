import Foundation

/// Merged rows that the notifications of a merge don't name: those without an object in the context,
/// and insertions whose objects the context had read before.
///
/// Lists of results may have to take objects of them, and a child may have objects of them.
struct UnannouncedRows {
  /// Objects of inserted rows that the context had read before the merge.
  var inserted: [NSManagedObject] = []
  /// Updated rows without an object in the context.
  var updated: [ObjectKey] = []
  /// Deleted rows without an object in the context.
  var deleted: [ObjectKey] = []

  var isEmpty: Bool { inserted.isEmpty && updated.isEmpty && deleted.isEmpty }

  /// The notification key of the rows.
  static let key = "rows"

  init() {}

  /// The rows of a notification.
  init?(_ notification: Notification) {
    guard let rows = notification.userInfo?[Self.key] as? UnannouncedRows else { return nil }
    self = rows
  }
}

extension NSNotification.Name {
  /// Posted to the lists of results of a context, on its lane, after a merge with unannounced rows.
  static let contextDidMergeUnannouncedRows = NSNotification.Name(
    "ContextDidMergeUnannouncedRowsNotification"
  )
}

extension NSManagedObjectContext {
  func postUnannounced(_ rows: UnannouncedRows) {
    guard !rows.isEmpty else { return }
    NotificationCenter.default.post(
      name: .contextDidMergeUnannouncedRows,
      object: self,
      userInfo: [UnannouncedRows.key: rows]
    )
  }
}
