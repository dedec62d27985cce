import CloudKitMirroring
import CloudKitTesting
import Effects
import Foundation
import OpenCloudKit
import OpenCoreData

/// One of the user's devices: a store, a container and a network that can be disconnected.
package final class DemoDevice: Sendable {
  package let name: String
  package let container: NSPersistentCloudKitContainer
  package let cloud: CKContainer
  package let link: SwitchableLink
  /// The URL of the store.
  package let storeURL: URL
  private let context: NSManagedObjectContext

  package init(
    name: String,
    model: DemoModel,
    cloud: CKContainer,
    link: SwitchableLink,
    folder: URL
  ) throws {
    self.name = name
    self.cloud = cloud
    self.link = link
    let home = folder.appendingPathComponent(name, isDirectory: true)
    try FileManager.default.createDirectory(at: home, withIntermediateDirectories: true)
    storeURL = home.appendingPathComponent("\(model.name).sqlite")
    let description = NSPersistentStoreDescription(url: storeURL)
    let options = NSPersistentCloudKitContainerOptions(
      containerIdentifier: cloud.containerIdentifier ?? ""
    )
    options.container = cloud
    description.cloudKitContainerOptions = options
    container = NSPersistentCloudKitContainer(name: model.name, managedObjectModel: model.model)
    container.persistentStoreDescriptions = [description]
    var failure: (any Error)?
    container.loadPersistentStores { _, error in failure = error }
    if let failure { throw failure }
    context = container.newBackgroundContext()
    context.automaticallyMergesChangesFromParent = true
    context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
  }

  /// Runs the body with the device's context, which has merged everything imported so far.
  package func perform<Result: Sendable>(
    _ body: @escaping @Sendable (NSManagedObjectContext) throws -> Result
  ) async throws -> Result {
    let context = context
    return try await context.perform {
      context.refreshAllObjects()
      return try body(context)
    }
  }

  /// The number of objects of the entity and its sub-entities.
  package func count(_ entity: String) async throws -> Int {
    try await perform { context in
      try context.count(for: NSFetchRequest<NSManagedObject>(entityName: entity))
    }
  }

  /// The first object of the entity.
  package func objectID(_ entity: String) async throws -> NSManagedObjectID? {
    try await perform { context in
      try context.fetch(NSFetchRequest<NSManagedObject>(entityName: entity)).first?.objectID
    }
  }

  /// The values of the first object of the entity, as `key = value`.
  package func texts(_ entity: String, _ keys: [String]) async throws -> [String] {
    try await perform { context in
      let object = try context.fetch(NSFetchRequest<NSManagedObject>(entityName: entity)).first
      return keys.map { key in "\(entity).\(key) = \(object?.value(forKey: key) ?? "nil")" }
    }
  }

  /// Everything in the store, by record name.
  package func snapshot() async throws -> GraphSnapshot {
    let container = container
    return try await perform { context in
      try GraphSnapshot(of: container.managedObjectModel.entities, in: context) {
        container.recordID(for: $0)?.recordName
      }
    }
  }

  /// Whether everything saved here has reached the server.
  package func isSettled() async throws -> Bool {
    try container.mirroringStatus().allSatisfy { $0.isIdle && $0.pendingCount == 0 }
  }

  /// Closes the store, which ends its mirroring; pending changes stay in the store.
  package func stop() async {
    let coordinator = container.persistentStoreCoordinator
    for store in coordinator.persistentStores {
      do {
        try coordinator.remove(store)
      } catch {
        // The process ends next, and a store survives a crash.
        StandardError.print("\(name)'s store did not close: \(error)")
      }
    }
  }
}
