import CoreData
import Foundation
import Testing

@Suite("Examples: getting started")
struct GettingStartedExamples {
  private func model() -> NSManagedObjectModel {
    // example: A model in code
    let title = NSAttributeDescription()
    title.name = "title"
    title.attributeType = .stringAttributeType

    let post = NSEntityDescription()
    post.name = "Post"
    post.properties = [title]

    let model = NSManagedObjectModel()
    model.entities = [post]
    // end
    return model
  }

  @Test("An object that is saved with a model in code is found again")
  @MainActor
  func objects() throws {
    let container = NSPersistentContainer(name: "Blog", managedObjectModel: model())
    container.persistentStoreDescriptions = [
      NSPersistentStoreDescription(url: URL(fileURLWithPath: "/dev/null"))
    ]
    container.loadPersistentStores { _, error in #expect(error == nil) }
    // example: Objects
    let context = container.viewContext
    let post = NSEntityDescription.insertNewObject(forEntityName: "Post", into: context)
    post.setValue("Hello", forKey: "title")
    try context.save()

    let request = NSFetchRequest<NSManagedObject>(entityName: "Post")
    request.predicate = NSPredicate(format: "title BEGINSWITH %@", "He")
    request.sortDescriptors = [NSSortDescriptor(key: "title", ascending: true)]
    for found in try context.fetch(request) { print(found.value(forKey: "title") ?? "") }
    // end
    #expect(try context.fetch(request) == [post])
  }

  // Compiled and not run: both write to the user's own folder.

  private func store(_ model: NSManagedObjectModel) {
    // example: A store
    let container = NSPersistentContainer(name: "Blog", managedObjectModel: model)
    container.loadPersistentStores { description, error in
      if let error { fatalError("\(description): \(error)") }
    }
    // end
  }

  @MainActor
  private func container() throws {
    // example: NSPersistentContainer
    let container = NSPersistentContainer(name: "Blog")
    container.loadPersistentStores { description, error in
      if let error { fatalError("\(description): \(error)") }
    }
    let post = Post(context: container.viewContext)
    post.title = "Hello"
    try container.viewContext.save()
    // end
  }
}
