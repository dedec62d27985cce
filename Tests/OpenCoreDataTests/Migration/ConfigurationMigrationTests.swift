import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

/// A model with notes in the configuration "Local" and tags in the configuration "Cloud".
@Suite("Migration of stores with a configuration")
struct ConfigurationMigrationTests {
  private typealias Parts = ModelParts

  let folder: ScratchFolder
  let url: URL

  init() throws {
    folder = try ScratchFolder()
    url = folder.file("Local.store")
  }

  /// Version 1 has a name, 2 a title beside it, and 3 the title alone.
  private static func model(_ version: Int, hasTags: Bool = true) -> NSManagedObjectModel {
    let names = [1: ["name"], 2: ["name", "title"], 3: ["title"]][version] ?? []
    let note = Parts.entity("Note", names.map { Parts.text($0) })
    let tag = Parts.entity("Tag", [Parts.text("word")])
    let model = NSManagedObjectModel()
    model.entities = hasTags ? [note, tag] : [note]
    model.setEntities([note], forConfigurationName: "Local")
    if hasTags { model.setEntities([tag], forConfigurationName: "Cloud") }
    return model
  }

  private static func reference(
    _ version: Int,
    hasTags: Bool = true
  ) -> NSManagedObjectModelReference {
    let model = model(version, hasTags: hasTags)
    return NSManagedObjectModelReference(model: model, versionChecksum: model.versionChecksum)
  }

  /// Opens the store with the configuration "Local", and saves and closes it.
  @discardableResult
  private func open<Result>(
    _ model: NSManagedObjectModel,
    _ type: NSPersistentStore.StoreType = .sqlite,
    _ options: [AnyHashable: Any] = [:],
    at place: URL? = nil,
    _ body: (NSManagedObjectContext) throws -> Result
  ) throws -> Result {
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
    let store = try coordinator.addPersistentStore(
      type: type,
      configuration: "Local",
      at: place ?? url,
      options: options
    )
    let context = NSManagedObjectContext(.privateQueue)
    context.persistentStoreCoordinator = coordinator
    let result = try context.performAndWait {
      let result = try body(context)
      if context.hasChanges { try context.save() }
      return result
    }
    try coordinator.remove(store)
    return result
  }

  private func fill(
    _ model: NSManagedObjectModel = model(1),
    _ type: NSPersistentStore.StoreType = .sqlite
  ) throws {
    try open(model, type) { _ = $0.insert("Note", ["name": "Ada"]) }
  }

  private func values(
    _ key: String,
    _ model: NSManagedObjectModel,
    _ type: NSPersistentStore.StoreType = .sqlite,
    _ options: [AnyHashable: Any] = [:],
    at place: URL? = nil
  ) throws -> [String?] {
    try open(model, type, options, at: place) { context in
      try context.all("Note").map { $0.value(forKey: key) as? String }
    }
  }

  /// The tables of the entities in the store.
  private func tables() throws -> [String] {
    let connection = try SQLiteConnection(path: url.path, mode: .readOnly)
    return try connection.query(
      "SELECT name FROM sqlite_master WHERE name IN ('ZNOTE', 'ZTAG') ORDER BY name"
    ) { $0.text(0) }
  }

  private func staged(_ stages: NSMigrationStage...) -> [AnyHashable: Any] {
    MigrationBench.lightweight.merging([
      NSPersistentStoreStagedMigrationManagerOptionKey: NSStagedMigrationManager(stages)
    ]) { $1 }
  }

  /// From a name to a title, by the app's code between the versions 2 and 3.
  private func titling() -> NSCustomMigrationStage {
    let stage = NSCustomMigrationStage(
      migratingFrom: Self.reference(2),
      to: Self.reference(3)
    )
    stage.willMigrateHandler = { manager, _ in
      let context = try #require(manager.container).newBackgroundContext()
      try context.performAndWait {
        for note in try context.all("Note") {
          note.setValue("Dr. \(note.value(forKey: "name") ?? "")", forKey: "title")
        }
        try context.save()
      }
    }
    return stage
  }

  @Test("Lightweight stages know the version of a store with a configuration")
  func lightweightStages() throws {
    try fill()
    let stage = NSLightweightMigrationStage([1, 2].map { Self.model($0).versionChecksum })
    #expect(try values("name", Self.model(2), .sqlite, staged(stage)) == ["Ada"])
    #expect(try tables() == ["ZNOTE"])
  }

  @Test("Handlers of a custom stage work on the entities of the store's configuration")
  func customStages() throws {
    try fill()
    let adding = NSLightweightMigrationStage([Self.model(1).versionChecksum])
    let titling = titling()
    var seen: [String?] = []
    titling.didMigrateHandler = { manager, _ in
      let context = try #require(manager.container).newBackgroundContext()
      seen = try context.performAndWait {
        try context.all("Note").map { $0.value(forKey: "title") as? String }
      }
    }
    #expect(try values("title", Self.model(3), .sqlite, staged(adding, titling)) == ["Dr. Ada"])
    #expect(seen == ["Dr. Ada"])
    #expect(try tables() == ["ZNOTE"])
    #expect(try values("title", Self.model(3)) == ["Dr. Ada"])
  }

  @Test("A custom stage to a version with an entity of another configuration adds no table for it")
  func newConfiguration() throws {
    let first = Self.model(1, hasTags: false)
    try fill(first)
    let stage = NSCustomMigrationStage(
      migratingFrom: Self.reference(1, hasTags: false),
      to: Self.reference(2)
    )
    #expect(try values("name", Self.model(2), .sqlite, staged(stage)) == ["Ada"])
    #expect(try tables() == ["ZNOTE"])
  }

  @Test(
    "A mapping model migrates the entities of the store's configuration",
    arguments: [NSPersistentStore.StoreType.sqlite, .binary]
  )
  func mappingModel(_ type: NSPersistentStore.StoreType) throws {
    try fill(Self.model(1), type)
    try Data(
      """
      <database>
        <object type="XDDEVENTITYMAPPING" id="z1">
          <attribute name="mappingnumber" type="int16">1</attribute>
          <attribute name="sourcename" type="string">Tag</attribute>
          <attribute name="destinationname" type="string">Tag</attribute>
          <relationship name="attributemappings" idrefs="z2"></relationship>
        </object>
        <object type="XDDEVATTRIBUTEMAPPING" id="z2">
          <attribute name="name" type="string">word</attribute>
        </object>
        <object type="XDDEVENTITYMAPPING" id="z3">
          <attribute name="mappingnumber" type="int16">2</attribute>
          <attribute name="sourcename" type="string">Note</attribute>
          <attribute name="destinationname" type="string">Note</attribute>
          <relationship name="attributemappings" idrefs="z4 z5"></relationship>
        </object>
        <object type="XDDEVATTRIBUTEMAPPING" id="z4">
          <attribute name="name" type="string">name</attribute>
        </object>
        <object type="XDDEVATTRIBUTEMAPPING" id="z5">
          <attribute name="name" type="string">title</attribute>
        </object>
      </database>
      """.utf8
    )
    .write(to: folder.file("Mapping.xcmappingmodel"))
    let newer = Self.model(2)
    newer.sourceURL = folder.file("Model.mom")
    let options: [AnyHashable: Any] = [NSMigratePersistentStoresAutomaticallyOption: true]
    #expect(try values("name", newer, type, options) == ["Ada"])
    if type == .sqlite { #expect(try tables() == ["ZNOTE"]) }
    #expect(try values("name", Self.model(2), type) == ["Ada"])
  }

  @Test("A lightweight migration of a binary store keeps to the store's configuration")
  func binaryStore() throws {
    try fill(Self.model(1), .binary)
    #expect(try values("name", Self.model(2), .binary, MigrationBench.lightweight) == ["Ada"])
    #expect(try values("name", Self.model(2), .binary) == ["Ada"])
  }

  @Test(
    "A migration manager writes a store with the source's configuration",
    arguments: [true, false]
  )
  func migrationManager(isSpecific: Bool) throws {
    try fill()
    let target = folder.file("New.sqlite")
    let manager = NSMigrationManager(
      sourceModel: Self.model(1),
      destinationModel: Self.model(2)
    )
    manager.usesStoreSpecificMigrationManager = isSpecific
    try manager.migrateStore(
      from: url,
      type: .sqlite,
      mapping: .inferredMappingModel(
        forSourceModel: Self.model(1),
        destinationModel: Self.model(2)
      ),
      to: target,
      type: .sqlite
    )
    #expect(try values("name", Self.model(2), at: target) == ["Ada"])
  }

  @Test("The stages of a binary store run, and their handlers save what a version drops")
  func binaryStages() throws {
    try fill(Self.model(1), .binary)
    let adding = NSLightweightMigrationStage([Self.model(1).versionChecksum])
    let newest = Self.model(3)
    #expect(try values("title", newest, .binary, staged(adding, titling())) == ["Dr. Ada"])
    #expect(try values("title", Self.model(3), .binary) == ["Dr. Ada"])
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path).count == 1)
  }

  @Test("An error of a handler leaves a binary store unchanged")
  func failingBinaryStage() throws {
    struct Trouble: Error {}
    try fill(Self.model(1), .binary)
    let before = try Data(contentsOf: url)
    let stage = NSCustomMigrationStage(migratingFrom: Self.reference(1), to: Self.reference(3))
    stage.didMigrateHandler = { _, _ in throw Trouble() }
    #expect(throws: Trouble.self) {
      try values("title", Self.model(3), .binary, staged(stage))
    }
    #expect(try Data(contentsOf: url) == before)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path).count == 1)
  }
}
