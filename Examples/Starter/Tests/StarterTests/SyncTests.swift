import CloudKitTesting
import Foundation
import StarterStore
import Testing

@Suite("Items on two devices")
struct SyncTests {
  @Test("An item that is added on one device is on the other after a sync")
  func twoDevices() async throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("Starter-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    // The service and both devices are in this process: no server, no sockets.
    let cloud = try await TestCloud()
    func makeDevice(_ name: String) async throws -> (TestDevice, ItemStore) {
      let device = try await TestDevice(name: name, folder: folder, cloud: cloud)
      // The app's own store, on the device's connection.
      let store = try ItemStore(at: device.storeURL, options: device.cloudKitContainerOptions)
      try device.adopt(store.container)
      return (device, store)
    }
    let (phone, phoneItems) = try await makeDevice("phone")
    let (laptop, laptopItems) = try await makeDevice("laptop")

    try phoneItems.add("Buy milk")
    try await phone.sync()
    try await laptop.sync()
    #expect(try laptopItems.titles() == ["Buy milk"])

    for device in [phone, laptop] { try await device.quit() }
    await cloud.shutdown()
  }

  @Test("Items of a store without a server are there when it is opened again")
  func alone() throws {
    let url = FileManager.default.temporaryDirectory
      .appendingPathComponent("Starter-\(UUID().uuidString).sqlite")
    defer {
      for suffix in ["", "-wal", "-shm"] {
        try? FileManager.default.removeItem(atPath: url.path + suffix)
      }
    }
    try ItemStore(at: url, containerIdentifier: nil).add("Buy milk")
    #expect(try ItemStore(at: url, containerIdentifier: nil).titles() == ["Buy milk"])
  }
}
