import CloudKitTesting
import Foundation
import WatershedSQLite

/// A copy of a device's store, which may be open, and its return.
struct StoreBackup {
  let url: URL

  init(of device: TestDevice, _ name: String = "backup") throws {
    url = device.storeURL.deletingLastPathComponent().appendingPathComponent("\(name).sqlite")
    try SQLiteConnection(path: device.storeURL.path).execute("VACUUM INTO '\(url.path)'")
  }

  /// Replaces the store of a device that is not running.
  func restore(to device: TestDevice) throws {
    for suffix in ["", "-wal", "-shm"] {
      let path = device.storeURL.path + suffix
      if FileManager.default.fileExists(atPath: path) {
        try FileManager.default.removeItem(atPath: path)
      }
    }
    try FileManager.default.copyItem(at: url, to: device.storeURL)
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
