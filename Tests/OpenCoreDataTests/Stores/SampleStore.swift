import Foundation
import OpenCoreData

/// A small model with every kind of relationship.
final class SampleStore {
  let folder: ScratchFolder
  let url: URL
  let options: [AnyHashable: Any]
  private(set) var store: SQLiteStore

  init(options: [AnyHashable: Any] = [NSPersistentHistoryTrackingKey: true]) throws {
    folder = try ScratchFolder()
    url = folder.file("sample.sqlite")
    self.options = options
    store = try SQLiteStore(model: Self.model(), url: url, options: options)
  }

  func reopen() throws {
    store.close()
    store = try SQLiteStore(model: Self.model(), url: url, options: options)
  }

  static func model() -> NSManagedObjectModel {
    let post = ModelParts.entity(
      "Post",
      [
        ModelParts.attribute("title", .stringAttributeType) {
          $0.preservesValueInHistoryOnDeletion = true
        },
        ModelParts.attribute("score", .integer64AttributeType),
        ModelParts.attribute("price", .decimalAttributeType),
        ModelParts.derived("commentCount", .integer64AttributeType, "comments.@count"),
        ModelParts.derived("scoreSum", .integer64AttributeType, "comments.stars.@sum"),
        ModelParts.derived("searchTitle", .stringAttributeType, "canonical:(title)"),
        ModelParts.derived("savedAt", .dateAttributeType, "now()"),
      ]
    )
    let imagePost = ModelParts.entity(
      "ImagePost",
      parent: post,
      [ModelParts.attribute("width", .integer32AttributeType)]
    )
    let image = ModelParts.entity(
      "Image",
      [ModelParts.attribute("bytes", .binaryDataAttributeType)]
    )
    let comment = ModelParts.entity(
      "Comment",
      [
        ModelParts.attribute("text", .stringAttributeType),
        ModelParts.attribute("stars", .integer16AttributeType),
        ModelParts.derived("postTitle", .stringAttributeType, "post.title"),
      ]
    )
    let tag = ModelParts.entity("Tag", [ModelParts.attribute("name", .stringAttributeType)])
    tag.uniquenessConstraints = [["name"]]
    let person = ModelParts.entity("Person", [ModelParts.attribute("name", .stringAttributeType)])
    let list = ModelParts.entity("List", [ModelParts.attribute("name", .stringAttributeType)])
    ModelParts.relate(
      post,
      "comments",
      toMany: true,
      rule: .cascadeDeleteRule,
      comment,
      "post",
      toMany: false
    )
    ModelParts.relate(imagePost, "image", toMany: false, image, "post", toMany: false)
    ModelParts.relate(post, "tags", toMany: true, tag, "posts", toMany: true)
    ModelParts.relate(person, "friends", toMany: true, person, "friends", toMany: true)
    ModelParts.relate(person, "bookmarks", toMany: true, post)
    ModelParts.relate(
      list,
      "entries",
      toMany: true,
      ordered: true,
      comment,
      "list",
      toMany: false
    )
    ModelParts.relate(
      list,
      "people",
      toMany: true,
      ordered: true,
      person,
      "lists",
      toMany: true
    )
    let model = NSManagedObjectModel()
    model.entities = [post, imagePost, image, comment, tag, person, list]
    return model
  }

  func table(_ entity: String) throws -> EntityTable {
    guard let table = store.schema.entity(named: entity) else {
      throw CocoaError(.coderInvalidValue)
    }
    return table
  }

  func relationship(_ entity: String, _ name: String) throws -> NSRelationshipDescription {
    guard let found = try table(entity).layout.entity.relationshipsByName[name] else {
      throw CocoaError(.coderInvalidValue)
    }
    return found
  }

  func index(_ entity: String, _ property: String) throws -> Int {
    let layout = try table(entity).layout
    switch layout.slot(named: property) {
    case .attribute(let index): return index
    case .toOne(let index): return layout.attributes.count + index
    default: throw CocoaError(.coderInvalidValue)
    }
  }

  func values(_ entity: String, _ given: [String: RowValue] = [:]) throws -> [RowValue] {
    var values = Array(repeating: RowValue.null, count: try table(entity).layout.rowWidth)
    for (name, value) in given { values[try index(entity, name)] = value }
    return values
  }

  /// A new row for a save.
  func insertion(
    _ entity: String,
    _ given: [String: RowValue] = [:]
  ) throws -> RowChanges.Insertion {
    let table = try table(entity)
    let key = try store.reserveKeys(for: table.layout.entity, count: 1).lowerBound
    return RowChanges.Insertion(
      reference: RowReference(entityNumber: table.number, key: key),
      layout: table.layout,
      values: try values(entity, given)
    )
  }

  /// Saves one new row.
  func insert(_ entity: String, _ given: [String: RowValue] = [:]) throws -> RowReference {
    var changes = RowChanges()
    changes.inserted = [try insertion(entity, given)]
    _ = try store.commit(changes)
    return changes.inserted[0].reference
  }

  /// A change of a row, with the store's current version.
  func update(
    _ reference: RowReference,
    _ set: [String: RowValue],
    version: Int64? = nil
  ) throws -> RowChanges.Update {
    guard let row = try store.row(reference).found,
      let layout = store.layout(number: reference.entityNumber)
    else { throw CocoaError(.coderValueNotFound) }
    var values = row.values
    var changed: [Int] = []
    for (name, value) in set {
      let index = try index(layout.entityName, name)
      values[index] = value
      changed.append(index)
    }
    return RowChanges.Update(
      reference: reference,
      layout: layout,
      expectedVersion: version ?? row.version,
      changed: changed.sorted(),
      values: values
    )
  }

  func value(_ reference: RowReference, _ name: String) throws -> RowValue? {
    guard let row = try store.row(reference).found,
      let layout = store.layout(number: reference.entityNumber)
    else { return nil }
    return row.values[try index(layout.entityName, name)]
  }
}
