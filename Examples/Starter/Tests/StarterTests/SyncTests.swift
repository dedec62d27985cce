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
    var devices: [TestDevice] = []
    for name in ["phone", "laptop"] {
      let device = try await TestDevice(
        name: name,
        model: ItemStore.model,
        folder: folder,
        cloud: cloud
      )
      try device.launch()
      devices.append(device)
    }
    let (phone, laptop) = (devices[0], devices[1])

    try phone.save { try ItemStore.add("Buy milk", to: $0) }
    try await phone.sync()
    try await laptop.sync()
    #expect(try laptop.save { try ItemStore.titles(in: $0) } == ["Buy milk"])

    for device in devices { try await device.quit() }
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
