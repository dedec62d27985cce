import Foundation
import OpenCoreData
import Testing

/// `Model.sqlite`, `Model.xml` and `Model.backup` have one folder for large values, `.Model_SUPPORT`, in
/// Core Data too.
@Suite("Stores whose names differ in the extension alone")
struct ExternalFolderTests {
  private let folder: ScratchFolder
  private let url: URL
  private let backup: URL
  private let value = Data(repeating: 7, count: 200_000)

  init() throws {
    folder = try ScratchFolder()
    url = folder.file("Model.sqlite")
    backup = folder.file("Model.backup")
  }

  private static func model(_ name: String = "Note") -> NSManagedObjectModel {
    MigrationBench.model(
      ModelParts.entity(
        name,
        [
          ModelParts.text("title"),
          ModelParts.attribute("data", .binaryDataAttributeType) {
            $0.allowsExternalBinaryDataStorage = true
          },
        ]
      )
    )
  }

  /// Opens a store, runs the body with a context, saves and closes the store.
  @discardableResult
  private func open<Result>(
    _ url: URL,
    _ type: NSPersistentStore.StoreType = .sqlite,
    _ body: (NSManagedObjectContext) throws -> Result
  ) throws -> Result {
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: Self.model())
    let store = try coordinator.addPersistentStore(type: type, at: url)
    let context = NSManagedObjectContext(.privateQueue)
    context.persistentStoreCoordinator = coordinator
    let result = try context.performAndWait {
      let result = try body(context)
      try context.save()
      return result
    }
    try coordinator.remove(store)
    return result
  }

  private func fill(_ url: URL, _ value: Data) throws {
    try open(url) { _ = $0.insert("Note", ["title": "a", "data": value]) }
  }

  private func values(
    _ url: URL,
    _ type: NSPersistentStore.StoreType = .sqlite
  ) throws -> [Data?] {
    try open(url, type) { context in
      try context.all("Note", by: "title").map { $0.value(forKey: "data") as? Data }
    }
  }

  private var files: [String] {
    let path = folder.file(".Model_SUPPORT/_EXTERNAL_DATA").path
    return (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
  }

  private var coordinator: NSPersistentStoreCoordinator {
    NSPersistentStoreCoordinator(managedObjectModel: Self.model())
  }

  /// Replaces the store beside the first one, `Model.backup`, by a copy of it.
  private func copyToBackup() throws {
    try coordinator.replacePersistentStore(at: backup, withPersistentStoreFrom: url, type: .sqlite)
  }

  /// Migrates the store to a file beside it, and closes the new store.
  private func migrate(to moved: URL, _ type: NSPersistentStore.StoreType) throws {
    let coordinator = coordinator
    let store = try coordinator.addPersistentStore(type: .sqlite, at: url)
    let made = try coordinator.migratePersistentStore(store, to: moved, type: type)
    try coordinator.remove(made)
  }

  @Test("A store that was migrated to a binary one beside it keeps its large values")
  func migratedToBinary() throws {
    try fill(url, value)
    let moved = folder.file("Model.xml")
    try migrate(to: moved, .binary)
    #expect(try values(url) == [value])
    #expect(try values(moved, .binary) == [value])
  }

  @Test("A store that was migrated to another one beside it shares no file with it")
  func migrated() throws {
    try fill(url, value)
    let moved = folder.file("Model.store")
    try migrate(to: moved, .sqlite)
    #expect(files.count == 2)
    try open(moved) { try $0.all("Note").first?.setValue(nil, forKey: "data") }
    #expect(try values(url) == [value])
    #expect(files.count == 1)
  }

  @Test("Destroying a copy leaves the large values of its source")
  func destroyedCopy() throws {
    try fill(url, value)
    try copyToBackup()
    #expect(try values(backup) == [value])
    try coordinator.destroyPersistentStore(at: backup, type: .sqlite)
    #expect(try values(url) == [value])
    #expect(files.count == 1)
    try FileManager.default.removeItem(at: backup)
    try coordinator.destroyPersistentStore(at: url, type: .sqlite)
    #expect(!FileManager.default.fileExists(atPath: folder.file(".Model_SUPPORT").path))
  }

  @Test("A change of a store leaves the large values of its copy, and so does a second copy")
  func changedSource() throws {
    try fill(url, value)
    try copyToBackup()
    let other = Data(repeating: 8, count: 150_000)
    try open(url) { try $0.all("Note").first?.setValue(other, forKey: "data") }
    #expect(try values(backup) == [value])
    try copyToBackup()
    #expect(try values(backup) == [other])
    #expect(try values(url) == [other])
    #expect(files.count == 2)
  }

  @Test("A file that was copied by hand, and refers to the same large values, loses none of them")
  func copiedByHand() throws {
    try fill(url, value)
    let copy = folder.file("Model.copy")
    try FileManager.default.copyItem(at: url, to: copy)
    let other = folder.file("Other.sqlite")
    try fill(other, Data(repeating: 9, count: 120_000))
    try coordinator.replacePersistentStore(at: url, withPersistentStoreFrom: other, type: .sqlite)
    #expect(try values(copy) == [value])
    try coordinator.destroyPersistentStore(at: url, type: .sqlite)
    #expect(try values(copy) == [value])
    #expect(files.count == 1)
  }

  @Test("A store that cannot be read takes no large value of another store with it")
  func destroyedDamagedStore() throws {
    try fill(url, value)
    let damaged = folder.file("Model.damaged")
    try Data(repeating: 0x55, count: 10_000).write(to: damaged)
    try coordinator.destroyPersistentStore(
      at: damaged,
      type: .sqlite,
      options: [NSPersistentStoreForceDestroyOption: true as NSNumber]
    )
    #expect(try values(url) == [value])
  }

  @Test(
    "A migration manager writes a copy beside its source, or fails, without a loss for the source",
    arguments: [true, false]
  )
  func migrationManager(fails: Bool) throws {
    try fill(url, value)
    let mapping = try NSMappingModel.inferredMappingModel(
      forSourceModel: Self.model(),
      destinationModel: Self.model()
    )
    let manager = NSMigrationManager(
      sourceModel: Self.model(),
      destinationModel: Self.model()
    )
    let migrated = folder.file("Model.migrated")
    if fails {
      manager.usesStoreSpecificMigrationManager = false
      for entity in mapping.entityMappings {
        entity.mappingType = .customEntityMappingType
        entity.entityMigrationPolicyClassName = NSStringFromClass(LastMomentPolicy.self)
      }
    }
    func migrate() throws {
      try manager.migrateStore(
        from: url,
        type: .sqlite,
        options: [:],
        mapping: mapping,
        to: migrated,
        type: .sqlite,
        options: [:]
      )
    }
    if fails {
      #expect(throws: (any Error).self) { try migrate() }
      #expect(!FileManager.default.fileExists(atPath: migrated.path))
    } else {
      try migrate()
      #expect(try values(migrated) == [value])
      try open(migrated) { try $0.all("Note").forEach($0.delete) }
    }
    #expect(try values(url) == [value])
    #expect(files.count == 1)
  }

  @Test("A migration of a store to a newer model leaves the large values of the store beside it")
  func migratedInPlace() throws {
    try fill(url, value)
    try copyToBackup()
    let newer = Self.model("Note")
    newer.entitiesByName["Note"]?.properties = [ModelParts.text("title")]
    let stages = NSStagedMigrationManager([
      NSCustomMigrationStage(
        migratingFrom: NSManagedObjectModelReference(
          model: Self.model(),
          versionChecksum: Self.model().versionChecksum
        ),
        to: NSManagedObjectModelReference(
          model: newer,
          versionChecksum: newer.versionChecksum
        )
      )
    ])
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: newer)
    let store = try coordinator.addPersistentStore(
      ofType: NSSQLiteStoreType,
      configurationName: nil,
      at: url,
      options: [NSPersistentStoreStagedMigrationManagerOptionKey: stages]
    )
    try coordinator.remove(store)
    #expect(try values(backup) == [value])
    #expect(files.count == 1)
  }
}

/// Fails when all objects were made.
final class LastMomentPolicy: NSEntityMigrationPolicy {
  struct Trouble: Error {}

  override func end(_ mapping: NSEntityMapping, manager: NSMigrationManager) throws {
    throw Trouble()
  }
}
