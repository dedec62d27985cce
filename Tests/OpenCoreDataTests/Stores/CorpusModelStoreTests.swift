import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

@Suite(
  "Stores for published model files",
  .enabled(if: Corpus.isPresent, "the corpus is not here: see WATERSHED_SHARED")
)
struct CorpusModelStoreTests {
  @Test(
    "Every model gets a store that opens again with its model and accepts a row of each entity"
  )
  func everyModel() throws {
    let folder = try ScratchFolder()
    var count = 0
    for version in Corpus.modelVersions {
      guard let model = try? ModelFile.load(contentsOf: version) else { continue }
      count += 1
      let place: Comment = "\(version.path)"
      let url = folder.file("\(count).sqlite")
      try SQLiteStore(model: model, url: url).close()
      let inside = try SQLiteStore.model(inStoreAt: url)
      #expect(inside.entityVersionHashesByName == model.entityVersionHashesByName, place)
      let store = try SQLiteStore(model: inside, url: url)
      var changes = RowChanges()
      for entity in store.schema.entities where !entity.isAbstract {
        let key = try store.reserveKeys(for: entity.layout.entity, count: 1).lowerBound
        changes.inserted.append(
          RowChanges.Insertion(
            reference: RowReference(entityNumber: entity.number, key: key),
            layout: entity.layout,
            values: entity.layout.attributes.map(\.defaultRowValue)
              + entity.layout.toOnes.map { _ in .null }
          )
        )
      }
      do {
        let commit = try store.commit(changes)
        #expect(commit.rows.count >= changes.inserted.count, place)
        let back = try store.rows(changes.inserted.map(\.reference))
        #expect(back.count == changes.inserted.count, place)
      } catch is RowConstraintError {
        // Sub-entities share a unique default value, so they conflict.
        continue
      }
    }
    #expect(count > 100)
  }

  @Test("A model file and the store that Apple created from it agree on hashes and tables")
  func matchingModels() throws {
    let folder = try ScratchFolder()
    var matched: Set<String> = []
    let models = Corpus.modelVersions.compactMap { try? ModelFile.load(contentsOf: $0) }
    for name in Corpus.storeNames {
      let url = try Corpus.copyStore(name, to: folder.url)
      let metadata = try SQLiteStore.metadata(at: url)
      let matching = models.first {
        $0.isConfiguration(withName: nil, compatibleWithStoreMetadata: metadata)
      }
      guard let model = matching else { continue }
      matched.insert(name)
      let store = try SQLiteStore(model: model, url: url)
      let ours = try StoreSchema.new(model: model)
      #expect(ours.tables.map(\.name) == store.schema.tables.map(\.name), "\(name)")
      #expect(ours.joins.map(\.name) == store.schema.joins.map(\.name), "\(name)")
      for (mine, theirs) in zip(ours.entities, store.schema.entities) {
        #expect(mine.columns.map(\.name) == theirs.columns.map(\.name), "\(name) \(mine.name)")
      }
    }
    #expect(matched.count >= 8, "\(matched.sorted())")
  }
}
