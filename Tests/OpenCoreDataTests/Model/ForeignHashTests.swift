import Foundation
import OpenCoreData
import Testing

@Suite("Stores of Core Data whose models have derived attributes")
struct ForeignHashTests {
  @Test(
    "A store's own model is compatible with its metadata, and is found by them",
    .enabled(if: ModelCorpus.isPresent, ModelCorpus.missing)
  )
  func corpus() throws {
    var derived = 0
    for url in try ModelCorpus.stores() {
      guard let model = try? SQLiteStore.model(inStoreAt: url) else { continue }
      let metadata = try NSPersistentStoreCoordinator.metadataForPersistentStore(
        type: .sqlite,
        at: url
      )
      #expect(
        model.isConfiguration(withName: nil, compatibleWithStoreMetadata: metadata),
        "\(url.lastPathComponent)"
      )
      let found = NSManagedObjectModel(byMerging: [model], forStoreMetadata: metadata)
      #expect(found?.entities.count == model.entities.count, "\(url.lastPathComponent)")
      let stored = NSManagedObjectModel.versionHashes(inStoreMetadata: metadata)
      if stored != model.entityVersionHashesByName { derived += 1 }
    }
    #expect(derived > 1)
  }

  @Test("A model that differs from a store's in a derived attribute is not compatible")
  func otherModel() throws {
    func model(_ derivation: String) -> NSManagedObjectModel {
      MigrationBench.model(
        ModelParts.entity(
          "Note",
          [
            ModelParts.text("title"),
            ModelParts.derived("sorted", .stringAttributeType, derivation),
          ]
        )
      )
    }
    let bench = try MigrationBench()
    try bench.open(model("lowercase:(title)")) { _ in }
    let metadata = try NSPersistentStoreCoordinator.metadataForPersistentStore(
      type: .sqlite,
      at: bench.url
    )
    func isCompatible(_ derivation: String) -> Bool {
      model(derivation).isConfiguration(withName: nil, compatibleWithStoreMetadata: metadata)
    }
    #expect(isCompatible("lowercase:(title)"))
    #expect(!isCompatible("uppercase:(title)"))
  }
}
