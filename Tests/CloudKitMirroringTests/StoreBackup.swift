import CloudKitTesting
import Foundation
import WatershedSQLite

/// A copy of a device's store, which may be open, and its return.
struct StoreBackup {
  let url: URL
  private let store: URL

  init(of store: URL, _ name: String = "backup") throws {
    self.store = store
    url = store.deletingLastPathComponent().appendingPathComponent("\(name).sqlite")
    try SQLiteConnection(path: store.path).execute("VACUUM INTO '\(url.path)'")
  }

  init(of device: TestDevice, _ name: String = "backup") throws {
    try self.init(of: device.storeURL, name)
  }

  /// Replaces the store that was copied, which must not be open.
  func restore() throws {
    for suffix in ["", "-wal", "-shm"] {
      let path = store.path + suffix
      if FileManager.default.fileExists(atPath: path) {
        try FileManager.default.removeItem(atPath: path)
      }
    }
    try FileManager.default.copyItem(at: url, to: store)
  }
}

extension TestDevice {
  /// Launches the app again without a connection.
  ///
  /// Its mirroring is not set up then, and puts nothing that is saved into a batch.
  func relaunchOffline() async throws {
    try await quit()
    faults.isOnline = false
    try launch()
  }
}
