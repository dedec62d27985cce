import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

@Suite("Staged migration")
struct StagedMigrationTests {
  private typealias Parts = ModelParts

  /// A version of one model.
  ///
  /// 1 has a full name, 2 two optional names beside it, 3 the names alone, required, and 4 an age.
  private static func model(_ version: Int) -> NSManagedObjectModel {
    var names: [String]
    switch version {
    case 1: names = ["full"]
    case 2: names = ["full", "first", "last"]
    default: names = ["first", "last"]
    }
    if version == 4 { names.append("age") }
    return MigrationBench.model(
      Parts.entity(
        "Person",
        names.map { name in
          Parts.attribute(name, .stringAttributeType) {
            $0.isOptional = version < 3 || name == "age"
          }
        } + [
          Parts.attribute("photo", .binaryDataAttributeType) {
            $0.allowsExternalBinaryDataStorage = true
          }
        ]
      )
    )
  }

  private static func checksum(_ version: Int) -> String { model(version).versionChecksum }

  private static func reference(_ version: Int) -> NSManagedObjectModelReference {
    NSManagedObjectModelReference(model: model(version), versionChecksum: checksum(version))
  }

  private static let photo = Data(repeating: 9, count: 150_000)

  private func filled() throws -> MigrationBench {
    let bench = try MigrationBench("People.sqlite")
    try bench.open(Self.model(1)) { context in
      _ = context.insert("Person", ["full": "Ada Lovelace", "photo": Self.photo])
      _ = context.insert("Person", ["full": "Alan Turing"])
    }
    return bench
  }

  /// From 1 to 2 automatically, from 2 to 3 with the names split before.
  private func stages(
    _ handler: @escaping (NSManagedObjectContext) throws -> Void = { _ in }
  ) -> [NSMigrationStage] {
    let first = NSLightweightMigrationStage([Self.checksum(1)])
    first.label = "Adding names"
    let second = NSCustomMigrationStage(migratingFrom: Self.reference(2), to: Self.reference(3))
    second.willMigrateHandler = { manager, stage in
      #expect(stage.currentModel.versionChecksum == Self.checksum(2))
      let container = try #require(manager.container)
      let context = container.newBackgroundContext()
      try context.performAndWait {
        for person in try context.all("Person") {
          let parts = (person.value(forKey: "full") as? String ?? "").split(separator: " ")
          person.setValue(String(parts[0]), forKey: "first")
          person.setValue(String(parts[1]), forKey: "last")
        }
        try handler(context)
        try context.save()
      }
    }
    return [first, second, NSLightweightMigrationStage([Self.checksum(3), Self.checksum(4)])]
  }

  private func options(_ stages: [NSMigrationStage]) -> [AnyHashable: Any] {
    var options = MigrationBench.lightweight
    options[NSPersistentStoreStagedMigrationManagerOptionKey] = NSStagedMigrationManager(stages)
    return options
  }

  @Test("Stages migrate a store from version to version, with the app's handlers in between")
  func stagesRun() throws {
    let bench = try filled()
    let before = try NSPersistentStoreCoordinator.metadataForPersistentStore(
      ofType: NSSQLiteStoreType,
      at: bench.url
    )
    var seen: [String] = []
    let stages = stages()
    (stages[1] as? NSCustomMigrationStage)?.didMigrateHandler = { manager, stage in
      let context = try #require(manager.container).viewContext
      seen = try context.performAndWait {
        try context.all("Person", by: "last").compactMap { $0.value(forKey: "last") as? String }
      }
    }
    let manager = NSStagedMigrationManager(stages)
    #expect(manager.stages.count == 3)
    var options = MigrationBench.lightweight
    options[NSPersistentStoreStagedMigrationManagerOptionKey] = manager
    try bench.open(Self.model(4), options) { context in
      let people = try context.all("Person", by: "first")
      #expect(people.map { $0.value(forKey: "last") as? String } == ["Lovelace", "Turing"])
      #expect(people.first?.value(forKey: "photo") as? Data == Self.photo)
      let store = context.persistentStoreCoordinator?.persistentStores.first
      #expect(store?.identifier == before[NSStoreUUIDKey] as? String)
    }
    #expect(seen == ["Lovelace", "Turing"])
    #expect(manager.container == nil)
    let files = try FileManager.default.contentsOfDirectory(atPath: bench.folder.url.path)
    #expect(!files.contains { $0.hasPrefix(".") && $0.hasSuffix(".sqlite") })
  }

  @Test("Stages before the store's version are skipped")
  func skipping() throws {
    let bench = try MigrationBench()
    try bench.open(Self.model(3)) { context in
      _ = context.insert("Person", ["first": "Ada", "last": "Lovelace"])
    }
    let stages = stages { _ in Issue.record("The handler of an earlier stage was called.") }
    try bench.open(Self.model(4), options(stages)) { context in
      try #expect(context.all("Person").first?.value(forKey: "first") as? String == "Ada")
    }
  }

  @Test("An error of a handler leaves the store unchanged")
  func failingHandler() throws {
    struct Trouble: Error {}
    let bench = try filled()
    let untouched = try bench.dump()
    #expect(throws: Trouble.self) {
      try bench.open(Self.model(4), options(stages { _ in throw Trouble() })) { _ in }
    }
    try #expect(bench.dump() == untouched)
    try bench.open(Self.model(1), [:]) { context in
      let photos = try context.all("Person").compactMap { $0.value(forKey: "photo") as? Data }
      #expect(photos == [Self.photo])
    }
  }

  @Test("A store cannot be migrated backwards")
  func backwards() throws {
    let bench = try filled()
    let stages: [NSMigrationStage] = [
      NSLightweightMigrationStage([Self.checksum(3), Self.checksum(4)]),
      NSCustomMigrationStage(migratingFrom: Self.reference(1), to: Self.reference(2)),
    ]
    let error = try #require(bench.refusal(Self.model(4), options(stages)))
    #expect(error.code == NSStagedMigrationBackwardMigrationError)
    #expect(
      error.localizedDescription
        == "A store file cannot be migrated backwards with staged migration."
    )
  }

  @Test("A version that is in no stage is refused, and so is one that cannot be inferred")
  func unknown() throws {
    let bench = try filled()
    let error = bench.refusal(
      Self.model(3),
      options([NSLightweightMigrationStage([Self.checksum(3)])])
    )
    #expect(error?.code == NSManagedObjectModelReferenceNotFoundError)
  }

  @Test("Files of objects that a handler deletes are removed only when the migration is complete")
  func externalFiles() throws {
    let bench = try filled()
    let folder = bench.folder.file(".People_SUPPORT/_EXTERNAL_DATA")
    func files() -> [String] {
      ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []).sorted()
    }
    let before = files()
    #expect(before.count == 1)
    let stages = stages { context in
      #expect(files() == before)
      for person in try context.all("Person") where person.value(forKey: "photo") != nil {
        person.setValue(Data(repeating: 5, count: 160_000), forKey: "photo")
      }
      try context.save()
      #expect(files() == before)
    }
    try bench.open(Self.model(4), options(stages)) { context in
      let photos = try context.all("Person").compactMap { $0.value(forKey: "photo") as? Data }
      #expect(photos == [Data(repeating: 5, count: 160_000)])
    }
    #expect(files().count == 1)
    #expect(files() != before)
  }

  @Test("A version in two stages stops the program")
  func duplicates() async {
    await #expect(processExitsWith: .failure) {
      _ = NSStagedMigrationManager([
        NSLightweightMigrationStage(["a", "b"]), NSLightweightMigrationStage(["c", "a"]),
      ])
    }
  }
}
