import Effects
import Foundation
import OpenCoreData
import Synchronization

/// Observes the stores that a coordinator removes, and those that it moves to another place.
final class StoresObserver: Sendable {
  /// A store, and the one that took its place.
  typealias Move = (from: NSPersistentStore, to: NSPersistentStore)

  // The token is only handed back to its notification center.
  nonisolated(unsafe) private let token: any NSObjectProtocol

  init(
    of coordinator: NSPersistentStoreCoordinator,
    _ changed: @escaping @Sendable (_ removed: [NSPersistentStore], _ moved: Move?) -> Void
  ) {
    token = NotificationCenter.default.addObserver(
      forName: .NSPersistentStoreCoordinatorStoresDidChange,
      object: coordinator,
      queue: nil
    ) { notification in
      func stores(_ key: String) -> [NSPersistentStore] {
        notification.userInfo?[key] as? [NSPersistentStore] ?? []
      }
      let pair = stores(NSUUIDChangedPersistentStoresKey)
      changed(stores(NSRemovedPersistentStoresKey), pair.count == 2 ? (pair[0], pair[1]) : nil)
    }
  }

  deinit {
    NotificationCenter.default.removeObserver(token)
  }
}

extension NSPersistentCloudKitContainer {
  /// Ends the mirroring of removed stores, and continues that of a moved one in its new place.
  ///
  /// The mirroring's tables are in the store's file and move with it. A store that the app removes can
  /// be loaded and mirrored again.
  func storesDidChange(removed: [NSPersistentStore], moved: StoresObserver.Move?) {
    for store in removed {
      guard let former = removeMirror(of: store) else { continue }
      former.mirror.stop()
      MirroredStores.shared.remove(former.mirror)
      guard let moved, moved.from === store else { continue }
      do {
        guard let store = moved.to as? SQLiteStore else {
          throw MirroringErrorCode.modelRefused.error(
            "CloudKit integration is only supported for SQLite stores."
          )
        }
        try copyFiles(from: former.mirror.context.assets.url, to: AssetFolder.url(for: store))
        try attach(store, former.options)
      } catch {
        former.mirror.log.error("The store that was moved is no longer mirrored: \(error)")
      }
    }
  }

  /// The batch whose reply has not come needs its large values in the new place too.
  private func copyFiles(from former: URL, to present: URL) throws {
    guard former != present, try FileSystem.isThere(former.path) else { return }
    try FileSystem.makeFolder(present.path)
    for name in try FileSystem.names(in: former.path) {
      try FileSystem.copy(
        former.appendingPathComponent(name).path,
        over: present.appendingPathComponent(name).path
      )
    }
  }

  private func removeMirror(of store: NSPersistentStore) -> Mirrored? {
    mirrors.withLock { mirrors in
      mirrors.firstIndex { $0.store === store }.map { mirrors.remove(at: $0) }
    }
  }
}
