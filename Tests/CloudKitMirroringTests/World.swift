import CloudKitMirroring
import CloudKitServer
import CloudKitTesting
import Effects
import Foundation
import OpenCloudKit
import OpenCoreData
import Testing
import WatershedSQLite

/// A cloud and some devices of one user, in a folder that is removed after the test.
final class World: Sendable {
  let cloud: TestCloud
  let folder: URL
  let model: NSManagedObjectModel
  private let ownsFolder: Bool

  /// Creates a world whose cloud stores its data in a folder, or in memory; with the devices of
  /// another world if `devices` is its folder.
  init(
    model: NSManagedObjectModel = BlogModel.make(),
    dataFolder: URL? = nil,
    folder known: URL? = nil,
    effects: Effects = .live,
    limits: (inout ServiceLimits) -> Void = { _ in }
  ) async throws {
    cloud = try await TestCloud(dataFolder: dataFolder, effects: effects, limits: limits)
    ownsFolder = known == nil
    folder =
      known
      ?? FileManager.default.temporaryDirectory
      .appendingPathComponent("mirroring-" + UUID().uuidString, isDirectory: true)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    self.model = model
  }

  deinit {
    guard ownsFolder else { return }
    try? FileManager.default.removeItem(at: folder)
  }

  func device(
    _ name: String,
    person: String = "ada",
    model: NSManagedObjectModel? = nil,
    environment: CKContainerConfiguration.Environment = .development
  ) async throws
    -> TestDevice
  {
    let device = try await TestDevice(
      name: name,
      model: model ?? self.model,
      folder: folder,
      cloud: cloud,
      person: person,
      environment: environment
    )
    try device.launch()
    return device
  }

  /// Syncs all devices until none has changes for another.
  func settle(_ devices: TestDevice...) async throws {
    for _ in 0..<3 {
      for device in devices { try await device.sync() }
    }
  }

  /// Deletes the mirroring's zone on the server, as another app of the person can.
  func deleteZone() async throws {
    let web = try await cloud.container(device: "web")
    _ = try await web.privateCloudDatabase.deleteRecordZone(
      withID: .init(zoneName: MirrorNames.zone, ownerName: CKCurrentUserDefaultName)
    )
  }

  /// Runs the body with a world and its devices, and quits them afterwards.
  static func with(
    _ names: String...,
    model: NSManagedObjectModel = BlogModel.make(),
    _ body: (World, [TestDevice]) async throws -> Void
  ) async throws {
    let world = try await World(model: model)
    var devices: [TestDevice] = []
    for name in names { devices.append(try await world.device(name)) }
    do {
      try await body(world, devices)
    } catch {
      for device in devices { try? await device.quit() }
      throw error
    }
    for device in devices {
      try await device.quit()
      #expect(try device.brokenInvariants() == [])
    }
  }
}

extension TestDevice {
  /// The titles of all objects of an entity, in order.
  func titles(_ entity: String = "Post") throws -> [String] {
    try save { context in
      try context.all(entity).map { $0.value(forKey: "title") as? String ?? "nil" }.sorted()
    }
  }

  /// The broken invariants of the mirroring's tables in the closed store, a sentence each.
  func brokenInvariants() throws -> [String] {
    guard FileManager.default.fileExists(atPath: storeURL.path) else { return [] }
    let connection = try SQLiteConnection(path: storeURL.path)
    let tables = try connection.query("SELECT name FROM sqlite_master") { $0.text(0) }
    guard tables.contains("WSMIRROR_RECORD") else { return [] }
    return try MirrorMetadata(connection).brokenInvariants()
  }

  /// Runs a body with a context of another coordinator on the device's file.
  func editElsewhere(
    _ model: NSManagedObjectModel,
    _ body: (NSManagedObjectContext) throws -> Void
  ) throws {
    try editStore(at: storeURL, model, body)
  }
}

/// Runs a body with a context of another coordinator on a store's file, which keeps history and mirrors nothing,
/// as one of a widget or of a command-line tool.
func editStore(
  at url: URL,
  _ model: NSManagedObjectModel,
  options: [AnyHashable: Any] = [NSPersistentHistoryTrackingKey: true],
  _ body: (NSManagedObjectContext) throws -> Void
) throws {
  let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
  let store = try coordinator.addPersistentStore(type: .sqlite, at: url, options: options)
  let context = NSManagedObjectContext(.privateQueue)
  context.persistentStoreCoordinator = coordinator
  try context.performAndWait { try body(context) }
  try coordinator.remove(store)
}

extension NSManagedObjectContext {
  func make(_ entity: String, _ values: [String: Any?] = [:]) -> NSManagedObject {
    let object = NSEntityDescription.insertNewObject(forEntityName: entity, into: self)
    for (key, value) in values { object.setValue(value, forKey: key) }
    return object
  }

  func all(_ entity: String) throws -> [NSManagedObject] {
    try fetch(NSFetchRequest<NSManagedObject>(entityName: entity))
  }

  func first(_ entity: String, _ key: String, _ value: String) throws -> NSManagedObject {
    try #require(try all(entity).first { $0.value(forKey: key) as? String == value })
  }
}
