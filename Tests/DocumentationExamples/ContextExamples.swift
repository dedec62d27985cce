import CoreData
import Foundation
import Testing

// example: NSManagedObject
final class Note: NSManagedObject {
  @NSManaged var text: String?
  @NSManaged var created: Date?

  override func awakeFromInsert() {
    super.awakeFromInsert()
    created = Date()
  }
}
// end

@Suite("Examples: objects and contexts")
struct ContextExamples {
  private static let notes: NSManagedObjectModel = {
    // example: NSEntityDescription
    let text = NSAttributeDescription()
    text.name = "text"
    text.type = .string

    let created = NSAttributeDescription()
    created.name = "created"
    created.type = .date

    let note = NSEntityDescription()
    note.name = "Note"
    note.managedObjectClassName = NSStringFromClass(Note.self)
    note.properties = [text, created]
    // end
    // example: NSManagedObjectModel
    let model = NSManagedObjectModel()
    model.entities = [note]
    // end
    return model
  }()

  @Test("A class of the app gives new objects a date")
  func managedObject() throws {
    let container = NSPersistentContainer(name: "Notes", managedObjectModel: Self.notes)
    container.persistentStoreDescriptions = [
      NSPersistentStoreDescription(url: URL(fileURLWithPath: "/dev/null"))
    ]
    container.loadPersistentStores { _, error in #expect(error == nil) }
    let context = container.newBackgroundContext()
    try context.performAndWait {
      let note = Note(context: context)
      note.text = "Buy milk"
      try context.save()
      #expect(note.created != nil)
    }
  }

  @Test("A background context saves with an author")
  func context() async throws {
    let container = try Blog.inMemory()
    // example: NSManagedObjectContext
    let context = container.newBackgroundContext()
    context.transactionAuthor = "import"
    try await context.perform {
      for title in ["One", "Two"] {
        let post = Post(context: context)
        post.title = title
      }
      try context.save()
    }
    // end
    let count = try await context.perform {
      try context.count(for: NSFetchRequest<Post>(entityName: "Post"))
    }
    #expect(count == 2)
  }

  @Test("A merge policy keeps the changes of both contexts")
  func mergePolicy() throws {
    let container = try Blog.inMemory()
    let context = container.newBackgroundContext()
    let post = try context.performAndWait { try context.addPosts("Draft")[0] }
    let other = container.newBackgroundContext()
    try other.performAndWait {
      let found = try #require(try other.existingObject(with: post.objectID) as? Post)
      found.rating = 5
      found.title = "Theirs"
      try other.save()
    }
    try context.performAndWait {
      // example: NSMergePolicy
      context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
      post.title = "Ours"
      try context.save()
      // end
      #expect(post.title == "Ours")
      #expect(post.rating == 5)
    }
  }

  @Test("A child context edits objects that its parent sees after the child's save")
  func childContext() throws {
    let container = try Blog.inMemory()
    let context = container.newBackgroundContext()
    let post = try context.performAndWait { try context.addPosts("Draft")[0] }
    let objectID = post.objectID
    try context.performAndWait {
      // example: A child context
      let editor = NSManagedObjectContext(.privateQueue)
      editor.parent = context
      try editor.performAndWait {
        let edited = try editor.existingObject(with: objectID)
        edited.setValue("Final", forKey: "title")
        try editor.save()  // moves the change into the parent
      }
      try context.save()  // moves it into the store
      // end
      #expect(post.title == "Final")
    }
  }

  @Test("An undo manager takes back the changes of a turn")
  func undo() throws {
    let context = try Blog.inMemory().newBackgroundContext()
    try context.performAndWait {
      let post = try context.addPosts("Draft")[0]
      // example: UndoManager
      let undoManager = UndoManager()
      context.undoManager = undoManager
      post.title = "Final"
      undoManager.setActionName("Rename")
      context.undo()  // post.title is "Draft" again
      context.redo()  // post.title is "Final"
      // end
      #expect(post.title == "Final")
      context.undo()
      #expect(post.title == "Draft")
    }
  }

  @Test("An object's identifier finds it in another context")
  func objectID() throws {
    let container = try Blog.inMemory()
    let context = container.newBackgroundContext()
    let post = try context.performAndWait { try context.addPosts("One")[0] }
    // example: NSManagedObjectID
    let objectID = post.objectID
    let other = container.newBackgroundContext()
    try other.performAndWait {
      let same = try other.existingObject(with: objectID)
      same.setValue(true, forKey: "isRead")
      try other.save()
    }
    // end
    context.performAndWait {
      context.refreshAllObjects()
      #expect(post.isRead)
    }
  }

  @Test("Two relationships of a model in code are each other's inverse")
  func relationships() throws {
    let folder = NSEntityDescription()
    folder.name = "Folder"
    let note = NSEntityDescription()
    note.name = "Note"
    // example: NSRelationshipDescription
    let notes = NSRelationshipDescription()
    notes.name = "notes"
    notes.destinationEntity = note
    notes.deleteRule = .cascadeDeleteRule

    let parent = NSRelationshipDescription()
    parent.name = "folder"
    parent.destinationEntity = folder
    parent.maxCount = 1

    notes.inverseRelationship = parent
    parent.inverseRelationship = notes
    folder.properties = [notes]
    note.properties = [parent]
    // end
    #expect(notes.isToMany)
    #expect(!parent.isToMany)
    #expect(note.relationshipsByName["folder"]?.inverseRelationship === notes)
  }

  @Test("A context at a query generation does not see later commits")
  func queryGeneration() async throws {
    try await Blog.withFolder { folder in
      let container = try Blog.container(at: folder.appendingPathComponent("Blog.sqlite"))
      let other = container.newBackgroundContext()
      try other.performAndWait { _ = try other.addPosts("One") }
      let context = container.newBackgroundContext()
      try context.performAndWait {
        // example: NSQueryGenerationToken
        try context.setQueryGenerationFrom(.current)
        let posts = try context.fetch(NSFetchRequest<Post>(entityName: "Post"))
        // end
        #expect(posts.count == 1)
      }
      try other.performAndWait { _ = try other.addPosts("Two") }
      try context.performAndWait {
        let count = try context.count(for: NSFetchRequest<Post>(entityName: "Post"))
        #expect(count == 1)
      }
      try container.removeStores()
    }
  }

  @Test("A coordinator opens a store without a container")
  func coordinator() async throws {
    try await Blog.withFolder { folder in
      let model = Blog.model
      let storeURL = folder.appendingPathComponent("Blog.sqlite")
      // example: NSPersistentStoreCoordinator
      let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
      let store = try coordinator.addPersistentStore(type: .sqlite, at: storeURL)

      let context = NSManagedObjectContext(.privateQueue)
      context.persistentStoreCoordinator = coordinator
      // end
      try context.performAndWait { _ = try context.addPosts("One") }
      try coordinator.remove(store)
    }
  }
}
