import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

@Suite("Deferred lightweight migration")
struct DeferredMigrationTests {
  private func model(_ attributes: [String], indexed: Bool) -> NSManagedObjectModel {
    let post = ModelParts.entity(
      "Post",
      attributes.map { ModelParts.attribute($0, .stringAttributeType) }
    )
    if indexed {
      let element = NSFetchIndexElementDescription(
        property: post.properties[0],
        collationType: .binary
      )
      post.indexes = [NSFetchIndexDescription(name: "byTitle", elements: [element])]
    }
    return MigrationBench.model(post)
  }

  private func objects(_ bench: MigrationBench) throws -> [String] {
    try bench.connect().query("SELECT name FROM sqlite_master ORDER BY name") { $0.text(0) }
  }

  @Test("Old tables and indexes wait until the migration is finished, as the metadata record")
  func deferred() throws {
    let key = NSPersistentStoreDeferredLightweightMigrationOptionKey
    let bench = try MigrationBench()
    try bench.open(model(["title", "body"], indexed: false)) { context in
      _ = context.insert("Post", ["title": "a", "body": "b"])
    }
    var options = MigrationBench.lightweight
    options[key] = true
    let newer = model(["title"], indexed: true)
    try bench.open(newer, options) { context in
      let coordinator = try #require(context.persistentStoreCoordinator)
      let store = try #require(coordinator.persistentStores.first)
      #expect(coordinator.metadata(for: store)[key] as? Bool == true)
      try #expect(context.all("Post").first?.value(forKey: "title") as? String == "a")
      try #expect(objects(bench).contains("_T_ZPOST"))
      try #expect(!objects(bench).contains("Z_Post_byTitle"))
      try coordinator.finishDeferredLightweightMigration()
      #expect(coordinator.metadata(for: store)[key] == nil)
      try coordinator.finishDeferredLightweightMigrationTask()
    }
    try #expect(!objects(bench).contains("_T_ZPOST"))
    try #expect(objects(bench).contains("Z_Post_byTitle"))
    try bench.open(newer, [:]) { try #expect($0.all("Post").count == 1) }
  }
}
