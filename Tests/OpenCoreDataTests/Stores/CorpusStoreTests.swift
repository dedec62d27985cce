import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

@Suite("Stores that Apple's Core Data wrote", .enabled(if: Corpus.isPresent, "no corpus here"))
struct CorpusStoreTests {
  /// Opens the store with the model that it contains.
  ///
  /// One store is older than embedded models; its model file has the former binary format, so its
  /// entities are described here.
  private static func open(_ url: URL) throws -> SQLiteStore {
    guard url.lastPathComponent.contains("Recipes") else {
      return try SQLiteStore(model: try SQLiteStore.model(inStoreAt: url), url: url)
    }
    #expect(throws: (any Error).self) { try SQLiteStore.model(inStoreAt: url) }
    return try SQLiteStore(
      model: recipes(),
      url: url,
      options: [NSIgnorePersistentStoreVersioningOption: true]
    )
  }

  private static func recipes() -> NSManagedObjectModel {
    let recipe = ModelParts.entity("Recipe")
    let image = ModelParts.entity("Image")
    let type = ModelParts.entity("RecipeType")
    let ingredient = ModelParts.entity("Ingredient")
    let strings = ["prepTime", "name", "instructions", "overview"]
    recipe.properties =
      strings.map { ModelParts.attribute($0, .stringAttributeType) }
      + [ModelParts.attribute("thumbnailImage", .transformableAttributeType)]
    image.properties = [ModelParts.attribute("image", .transformableAttributeType)]
    type.properties = [ModelParts.attribute("name", .stringAttributeType)]
    ingredient.properties = [
      ModelParts.attribute("name", .stringAttributeType),
      ModelParts.attribute("amount", .stringAttributeType),
      ModelParts.attribute("displayOrder", .integer16AttributeType),
    ]
    ModelParts.relate(recipe, "image", toMany: false, image, "recipe", toMany: false)
    ModelParts.relate(recipe, "type", toMany: false, type, "recipes", toMany: true)
    ModelParts.relate(recipe, "ingredients", toMany: true, ingredient, "recipe", toMany: false)
    let model = NSManagedObjectModel()
    model.entities = [recipe, image, type, ingredient]
    return model
  }

  @Test(
    "Every row of every entity is read, with the counts and values of plain SQL",
    arguments: Corpus.storeNames
  )
  func readsEveryRow(name: String) throws {
    let folder = try ScratchFolder()
    let url = try Corpus.copyStore(name, to: folder.url)
    let store = try Self.open(url)
    defer { store.close() }
    let plain = try SQLiteConnection(path: url.path, mode: .readOnly)
    for entity in store.schema.entities {
      var request = RowFetch(entity: entity.layout.entity, kind: .rows)
      request.includesSubentities = false
      guard case .rows(let rows) = try store.fetch(request) else {
        Issue.record("no rows came back")
        continue
      }
      let expected = try plain.scalar(
        "SELECT COUNT(*) FROM \(entity.table) WHERE Z_ENT = \(entity.number)"
      )
      #expect(expected == .integer(Int64(rows.count)), "\(name) \(entity.name)")
      var counting = request
      counting.kind = .count
      if case .count(let count) = try store.fetch(counting) { #expect(count == rows.count) }
      for row in rows { try Self.compare(row, entity, with: plain) }
    }
  }

  private static func compare(
    _ row: Row,
    _ entity: EntityTable,
    with plain: SQLiteConnection
  ) throws {
    for (index, column) in entity.columns.enumerated() where column.isStored {
      let raw = try plain.scalar(
        "SELECT \(column.name) FROM \(entity.table) WHERE Z_PK = ?",
        [.integer(row.reference.key)]
      )
      let place: Comment = "\(entity.name) \(row.reference.key) \(column.name)"
      switch (row.values[index], raw) {
      case (.integer(let value), .integer(let stored)): #expect(value == stored, place)
      case (.double(let value), .real(let stored)), (.date(let value), .real(let stored)):
        #expect(value == stored, place)
      case (.double(let value), .integer(let stored)), (.date(let value), .integer(let stored)):
        #expect(value == Double(stored), place)
      case (.string(let value), .text(let stored)): #expect(value == stored, place)
      case (.url(let value), .text(let stored)): #expect(value.absoluteString == stored, place)
      case (.uuid(let value), .blob(let stored)):
        #expect(withUnsafeBytes(of: value.uuid) { Data($0) } == stored, place)
      case (.data(let value), .blob(let stored)):
        #expect(value == stored || value == stored.dropFirst(), place)
      case (.reference(let value), .integer(let stored)): #expect(value.key == stored, place)
      case (.decimal(let value), .integer(let stored)):
        #expect(value.value == Decimal(stored), place)
      case (.decimal(let value), .real(let stored)):
        #expect("\(value.value)" == "\(stored)" || value.value == Decimal(stored), place)
      case (.decimal, .text): break
      case (.null, .null?), (.null, nil): break
      // An external file that the corpus does not have, or a key of a deleted row.
      case (.null, .blob(let stored)): #expect(stored.first == 2, place)
      case (.null, .integer) where column.form == .foreignKey: break
      default: Issue.record("\(place): \(row.values[index]) for \(String(describing: raw))")
      }
    }
  }

  @Test("To-many relationships agree with their inverses", arguments: Corpus.storeNames)
  func followsRelationships(name: String) throws {
    let folder = try ScratchFolder()
    let store = try Self.open(try Corpus.copyStore(name, to: folder.url))
    defer { store.close() }
    for entity in store.schema.entities {
      var request = RowFetch(entity: entity.layout.entity, kind: .references)
      request.includesSubentities = false
      guard case .references(let sources) = try store.fetch(request), !sources.isEmpty else {
        continue
      }
      for slot in entity.layout.toManys where !slot.description.isTransient {
        let found = try store.destinations(of: slot.description, from: sources)
        guard let inverse = slot.inverse else { continue }
        for (source, destinations) in found {
          #expect(Set(destinations).count == destinations.count)
          if inverse.isToMany {
            let back = try store.destinations(of: inverse, from: destinations)
            #expect(destinations.allSatisfy { back[$0]?.contains(source) == true })
          } else {
            for (reference, row) in try store.rows(destinations) {
              let layout = try #require(store.layout(number: reference.entityNumber))
              guard case .toOne(let index) = layout.slot(named: inverse.name) else { continue }
              let value = row.values[layout.attributes.count + index]
              #expect(value == .reference(source), "\(entity.name).\(slot.name)")
            }
          }
        }
      }
    }
  }

  @Test("A new row can be added to the existing ones", arguments: Corpus.storeNames)
  func writes(name: String) throws {
    let folder = try ScratchFolder()
    let store = try Self.open(try Corpus.copyStore(name, to: folder.url))
    defer { store.close() }
    for entity in store.schema.entities where !entity.isAbstract {
      let key = try store.reserveKeys(for: entity.layout.entity, count: 1).lowerBound
      let reference = RowReference(entityNumber: entity.number, key: key)
      #expect(try store.row(reference).found == nil)
      var changes = RowChanges()
      let values =
        entity.layout.attributes.map(\.defaultRowValue)
        + entity.layout.toOnes.map { _ in RowValue.null }
      changes.inserted = [
        RowChanges.Insertion(reference: reference, layout: entity.layout, values: values)
      ]
      do {
        let commit = try store.commit(changes)
        #expect(commit.rows.contains { $0.reference == reference && $0.version == 1 })
      } catch is RowConstraintError {
        continue
      }
    }
  }
}
