import Foundation
import OpenCoreData

extension NSPersistentCloudKitContainer {
  /// The recovery lists of the mirrored stores: objects and edits that another device's deletion, a restored server or a
  /// repeated batch overrode, oldest first.
  ///
  /// ```swift
  /// for entry in try container.recoveryEntries() where entry.entityName == "Post" {
  ///   print(entry.date, entry.reason, entry.value(forKey: "title") ?? "untitled")
  ///   if wantsBack(entry) { try container.restore(entry) } else { try container.discard([entry]) }
  /// }
  /// ```
  ///
  /// An entry is kept until it is restored or discarded. The call reads the stores' files on the
  /// calling thread.
  ///
  /// - Parameters:
  ///   - store: The store to read; nil for all mirrored stores of the container.
  ///   - limit: The most entries to read of each store, as an entry can have a large value.
  /// - Returns: The entries.
  /// - Throws: An error of the store that cannot be read.
  public func recoveryEntries(
    in store: NSPersistentStore? = nil,
    limit: Int = 1000
  ) throws -> [RecoveryEntry] {
    try storeMirrors.filter { store == nil || $0.store === store }
      .flatMap { try $0.recoveryEntries(limit: limit) }
  }

  /// Restores an entry's values in its store, and removes the entry from the list.
  ///
  /// If the object exists, the entry's values replace its own, as an edit that is exported, and the
  /// replaced values become an entry; if not, it is created again under its record's name. A link
  /// to an object that does not exist waits for that object: a folder and its notes can be restored
  /// in any order. Values that the model has no property for stay in the list. Contexts are notified of the change as of an import's.
  ///
  /// - Returns: The identifier of the object.
  /// - Throws: `NSCocoaErrorDomain` 134490 if the entry is no longer in the list, or the model has
  ///   no such entity or none of the properties; an error of the store that cannot be written. The entry is then kept.
  @discardableResult
  public func restore(_ entry: RecoveryEntry) throws -> NSManagedObjectID {
    let mirror = try mirror(keeping: entry)
    let reference = try mirror.writeFolded(MirrorAuthor.recovery, isCancellable: false) { session in
      try session.restore(entry.id)
    }
    guard let objectID = persistentStoreCoordinator.objectID(mirror.store, reference) else {
      throw MirroringErrorCode.cancelled.error("The store was removed while an entry was restored.")
    }
    return objectID
  }

  /// Removes entries from their stores' lists permanently.
  ///
  /// - Throws: An error of the store that cannot be written.
  public func discard(_ entries: some Sequence<RecoveryEntry>) throws {
    for entry in entries {
      try mirror(keeping: entry).write(MirrorAuthor.setup) {
        try $0.metadata.discardRecoveredEdit(entry.id)
      }
    }
  }

  private func mirror(keeping entry: RecoveryEntry) throws -> StoreMirror {
    let found = storeMirrors.first { $0.journal.storeIdentifier == entry.storeIdentifier }
    guard let found else {
      throw MirroringErrorCode.neverInitialized.error(
        "No mirrored store of this container keeps the entry. Load the store first."
      )
    }
    return found
  }
}

extension StoreMirror {
  fileprivate func recoveryEntries(
    limit: Int
  ) throws -> [NSPersistentCloudKitContainer.RecoveryEntry] {
    try read { try $0.recoveredEdits(limit: limit) }.map {
      NSPersistentCloudKitContainer.RecoveryEntry(
        $0,
        context.mapping,
        storeIdentifier: journal.storeIdentifier,
        zoneID: zoneID
      )
    }
  }
}
