import Foundation
import OpenCloudKit
import OpenCoreData
import Synchronization

/// The stores that this process mirrors; each may be mirrored only once.
final class MirroredStores: Sendable {
  static let shared = MirroredStores()

  private struct Entry {
    weak var store: NSPersistentStore?
    weak var mirror: StoreMirror?
  }

  private struct State {
    var claimed: Set<String> = []
    var entries: [Entry] = []
  }

  private let state = Mutex(State())

  /// Reserves a store; throws if another container of this process mirrors it.
  func claim(_ identifier: String) throws {
    guard state.withLock({ $0.claimed.insert(identifier).inserted }) else {
      throw MirroringErrorCode.anotherInstance.error(
        "There is another instance of this persistent store actively syncing with CloudKit in this "
          + "process."
      )
    }
  }

  func release(_ identifier: String) {
    state.withLock { _ = $0.claimed.remove(identifier) }
  }

  func add(_ mirror: StoreMirror, of store: NSPersistentStore) {
    state.withLock { state in
      state.entries.removeAll { $0.mirror == nil }
      state.entries.append(Entry(store: store, mirror: mirror))
    }
  }

  func remove(_ mirror: StoreMirror) {
    release(mirror.journal.storeIdentifier)
    state.withLock { state in
      state.entries.removeAll { $0.mirror == nil || $0.mirror === mirror }
    }
  }

  /// The mirror of a store, regardless of which container loaded it.
  func mirror(of store: NSPersistentStore?) -> StoreMirror? {
    guard let store else { return nil }
    return state.withLock { state in state.entries.first { $0.store === store }?.mirror }
  }
}
