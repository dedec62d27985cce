import Foundation
import OpenCoreData

/// Folders with posts and a cover (one-to-one), and two contexts of one coordinator.
final class FolderStack {
  let folder: StoreFolder
  let coordinator: NSPersistentStoreCoordinator
  let first: NSManagedObjectContext
  let second: NSManagedObjectContext

  init(
    rule: NSDeleteRule = .cascadeDeleteRule,
    isFolderRequired: Bool = false,
    hasRelatedPosts: Bool = false,
    type: String = NSSQLiteStoreType
  ) throws {
    folder = try StoreFolder()
    coordinator = NSPersistentStoreCoordinator(
      managedObjectModel: Self.model(rule, isFolderRequired, hasRelatedPosts)
    )
    try coordinator.addPersistentStore(
      ofType: type,
      configurationName: nil,
      at: folder.url.appendingPathComponent("Folders"),
      options: nil
    )
    first = NSManagedObjectContext(.privateQueue)
    second = NSManagedObjectContext(.privateQueue)
    first.persistentStoreCoordinator = coordinator
    second.persistentStoreCoordinator = coordinator
  }

  private static func model(
    _ rule: NSDeleteRule,
    _ isRequired: Bool,
    _ hasRelatedPosts: Bool
  ) -> NSManagedObjectModel {
    func optionalText(_ name: String) -> NSAttributeDescription {
      ModelParts.text(name) { $0.isOptional = true }
    }
    let folder = ModelParts.entity("Folder", [optionalText("name")])
    let post = ModelParts.entity("Post", [optionalText("title")])
    let cover = ModelParts.entity("Cover", [optionalText("color")])
    let posts = ModelParts.relate(folder, "posts", toMany: true, rule: rule, post, "folder")
    posts.inverseRelationship?.isOptional = !isRequired
    posts.inverseRelationship?.deleteRule = .nullifyDeleteRule
    let covers = ModelParts.relate(
      folder,
      "cover",
      toMany: false,
      rule: .cascadeDeleteRule,
      cover,
      "folder"
    )
    covers.isOptional = true
    covers.inverseRelationship?.isOptional = true
    covers.inverseRelationship?.deleteRule = .nullifyDeleteRule
    if hasRelatedPosts {
      ModelParts.relate(post, "related", toMany: true, rule: .cascadeDeleteRule, post, "related")
    }
    return MigrationBench.model(folder, post, cover)
  }

  /// Saves a folder with posts of these titles and a cover.
  func fill(_ titles: String...) throws {
    try first.performAndWait {
      let folder = first.insert("Folder", ["name": "old"])
      folder.setValue(first.insert("Cover", ["color": "red"]), forKey: "cover")
      for title in titles { _ = first.insert("Post", ["title": title, "folder": folder]) }
      try first.save()
    }
  }

  /// The objects of an entity in a context; one on its lane.
  func one(_ entity: String, _ context: NSManagedObjectContext) throws -> NSManagedObject {
    guard let found = try context.all(entity).first else { throw CocoaError(.coreData) }
    return found
  }

  /// Renames the only folder of a name in the second context, and saves it.
  func rename(_ name: String, to newName: String) throws {
    try second.performAndWait {
      for folder in try second.all("Folder")
      where folder.value(forKey: "name") as? String == name {
        folder.setValue(newName, forKey: "name")
      }
      try second.save()
    }
  }

  /// "title in folder" of each post, as a new context reads them.
  func posts() throws -> [String] {
    let context = NSManagedObjectContext(.privateQueue)
    context.persistentStoreCoordinator = coordinator
    return try context.performAndWait {
      try context.all("Post", by: "title").map { post in
        let folder = post.value(forKey: "folder") as? NSManagedObject
        let name = folder?.value(forKey: "name") as? String
        return "\(post.value(forKey: "title") as? String ?? "-") in \(name ?? "-")"
      }
    }
  }
}
