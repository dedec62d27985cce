import Effects
import Foundation
import OpenCoreData
import Testing

/// The same random predicates, on the tables of an actual store with inheritance.
@Suite("Predicates in memory and in a store agree")
struct PredicateStoreTests {
  @Test("Random predicates find the same objects in a store and in memory")
  func agree() throws {
    let random = SeededRandomness(seed: 7)
    let library = try SampleLibrary(random: random)
    let stored = try StoredLibrary(library)
    let generator = PredicateGenerator(random: random, library: library)
    var refused = 0
    for number in 0..<400 {
      let tree = generator.predicate()
      let found: [Int64]
      do {
        found = try stored.posts(where: NSPredicate.make(tree))
      } catch let error where "\(error)".contains("unimplemented SQL") {
        refused += 1
        continue
      }
      let expected = try library.posts.filter {
        try PredicateEvaluator(clock: FixedClock()).evaluate(tree, with: $0)
      }
      #expect(
        found == expected.map(\.key),
        "seed 7, predicate \(number): \(PredicateFormatWriter.string(tree))"
      )
    }
    #expect(refused < 40)
  }

  @Test("A store sorts like memory", arguments: SortOrdering.allCases)
  func sorts(_ ordering: SortOrdering) throws {
    let library = try SampleLibrary(random: SeededRandomness(seed: 8))
    let stored = try StoredLibrary(library)
    for key in ["title", "views", "price", "date", "author.name", "link"] {
      for ascending in [true, false] {
        let descriptors = [
          NSSortDescriptor(key: key, ascending: ascending, ordering: ordering),
          NSSortDescriptor(key: "number", ascending: true),
        ]
        let expected = library.posts.sorted(using: descriptors) { $0 }
        #expect(try stored.posts(sortedBy: descriptors) == expected.map(\.key))
      }
    }
  }

  struct FixedClock: EffectClock {
    var now: Date { Date(timeIntervalSinceReferenceDate: 3) }
    var uptime: Double { 0 }
    func sleep(seconds: Double) async throws {}
  }
}

/// A library's objects in a store of their own, half of the posts of a sub-entity.
private final class StoredLibrary {
  private let model = NSManagedObjectModel()
  private let store: SQLiteStore

  init(_ library: SampleLibrary) throws {
    Self.describe(model)
    var effects = Effects.live
    effects.clock = PredicateStoreTests.FixedClock()
    store = try SQLiteStore(
      model: model,
      url: URL(fileURLWithPath: "/dev/null"),
      effects: effects
    )
    for objects in [library.authors, library.tags, library.posts] {
      for object in objects {
        let entity = try #require(model.entitiesByName[Self.entityName(of: object)])
        let keys = try store.reserveKeys(for: entity, count: 1)
        #expect(keys.lowerBound == object.key)
        object.row = RowReference(
          entityNumber: try store.number(of: entity),
          key: keys.lowerBound
        )
      }
    }
    try fill(library)
  }

  private static func entityName(of object: SampleObject) -> String {
    object.entity == "Post" && object.key.isMultiple(of: 2) ? "ImagePost" : object.entity
  }

  private func fill(_ library: SampleLibrary) throws {
    var changes = RowChanges()
    for object in library.authors + library.tags + library.posts {
      let reference = try #require(object.row)
      let layout = try #require(store.layout(number: reference.entityNumber))
      var values = Array(repeating: RowValue.null, count: layout.rowWidth)
      for slot in layout.attributes {
        values[slot.index] = object.rowValue(forKey: slot.name) ?? .null
      }
      for slot in layout.toOnes {
        guard let index = slot.rowIndex, let link = object.links[slot.name]?.row else { continue }
        values[index] = .reference(link)
      }
      changes.inserted.append(
        RowChanges.Insertion(reference: reference, layout: layout, values: values)
      )
      guard object.entity == "Post",
        let relationship = layout.toManys.first(where: { $0.name == "tags" })?.description
      else { continue }
      for tag in object.many["tags"] ?? [] {
        changes.links.append(
          RowChanges.Link(
            relationship: relationship,
            source: reference,
            destination: try #require(tag.row),
            isInsertion: true
          )
        )
      }
    }
    _ = try store.commit(changes)
  }

  func posts(
    where predicate: NSPredicate? = nil,
    sortedBy descriptors: [NSSortDescriptor] = [NSSortDescriptor(key: "number", ascending: true)]
  ) throws -> [Int64] {
    let entity = try #require(model.entitiesByName["Post"])
    var fetch = RowFetch(entity: entity, kind: .references)
    fetch.predicate = predicate
    fetch.sortDescriptors = descriptors
    guard case .references(let references) = try store.fetch(fetch) else { return [] }
    return references.map(\.key)
  }

  // MARK: The model

  private static func describe(_ model: NSManagedObjectModel) {
    let author = entity(
      "Author",
      [
        "name": .stringAttributeType, "city": .stringAttributeType,
        "age": .integer64AttributeType,
      ]
    )
    let tag = entity("Tag", ["name": .stringAttributeType, "rank": .integer32AttributeType])
    let post = entity(
      "Post",
      [
        "number": .integer64AttributeType,
        "title": .stringAttributeType, "subtitle": .stringAttributeType,
        "views": .integer64AttributeType, "likes": .integer16AttributeType,
        "score": .doubleAttributeType, "price": .decimalAttributeType,
        "date": .dateAttributeType, "flag": .booleanAttributeType, "link": .URIAttributeType,
        "uuid": .UUIDAttributeType,
      ]
    )
    let imagePost = entity("ImagePost", ["width": .integer64AttributeType])
    post.subentities = [imagePost]
    relate(author, "posts", isToMany: true, post, "author", isToMany: false)
    relate(post, "tags", isToMany: true, tag, "posts", isToMany: true)
    model.entities = [author, tag, post, imagePost]
  }

  private static func entity(
    _ name: String,
    _ attributes: [String: NSAttributeType]
  ) -> NSEntityDescription {
    let entity = NSEntityDescription()
    entity.name = name
    entity.properties = attributes.sorted { $0.key < $1.key }.map { name, type in
      let attribute = NSAttributeDescription()
      attribute.name = name
      attribute.attributeType = type
      attribute.isOptional = true
      return attribute
    }
    return entity
  }

  private static func relate(
    _ first: NSEntityDescription,
    _ firstName: String,
    isToMany firstIsToMany: Bool,
    _ second: NSEntityDescription,
    _ secondName: String,
    isToMany secondIsToMany: Bool
  ) {
    let there = NSRelationshipDescription()
    there.name = firstName
    there.destinationEntity = second
    there.maxCount = firstIsToMany ? 0 : 1
    there.isOptional = true
    let back = NSRelationshipDescription()
    back.name = secondName
    back.destinationEntity = first
    back.maxCount = secondIsToMany ? 0 : 1
    back.isOptional = true
    there.inverseRelationship = back
    back.inverseRelationship = there
    first.properties.append(there)
    second.properties.append(back)
  }
}
