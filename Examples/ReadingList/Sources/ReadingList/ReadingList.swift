import CoreData

/// A store, a model in two versions, generated classes and a migration: read from top to bottom.
@main
enum ReadingList {
  static func main() throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("reading-list-\(ProcessInfo.processInfo.processIdentifier)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let store = folder.appendingPathComponent("ReadingList.sqlite")

    print("1. Last year's app made a store with the first version of the model.")
    try writeWithFirstVersion(store)

    print("2. Today's app opens it: the name became fullName, books count pages.")
    let container = try open(store)
    let context = container.viewContext

    print("3. What was there is still there.")
    // `Author` and its `fetchRequest()` are generated from the model while the app is built.
    let authors: NSFetchRequest<Author> = Author.fetchRequest()
    for author in try context.fetch(authors) {
      print("   \(author.fullName ?? "nobody") wrote \(author.typedBooks.count) books.")
    }

    print("4. A new book, and some reading.")
    let request = NSFetchRequest<Book>(entityName: "Book")
    request.predicate = NSPredicate(format: "title BEGINSWITH[c] %@", "the left")
    guard let book = try context.fetch(request).first else { return print("   The book is gone!") }
    book.pagesRead += 42
    let new = Book(context: context)
    new.title = "Always Coming Home"
    book.author?.addToBooks(new)
    try context.save()

    print("5. The list:")
    let list = NSFetchRequest<Book>(entityName: "Book")
    list.sortDescriptors = [NSSortDescriptor(key: "title", ascending: true)]
    for book in try context.fetch(list) { print("   \(book.summary)") }
  }

  /// The container finds the model by its name and brings an older store up to it.
  private static func open(_ url: URL) throws -> NSPersistentContainer {
    let container = NSPersistentContainer(name: "ReadingList")
    container.persistentStoreDescriptions = [NSPersistentStoreDescription(url: url)]
    var failure: (any Error)?
    container.loadPersistentStores { _, error in failure = error }
    if let failure { throw failure }
    return container
  }

  /// Objects without classes of their own, as the first version had them.
  private static func writeWithFirstVersion(_ url: URL) throws {
    let file = Bundle.module.url(
      forResource: "ReadingList",
      withExtension: "mom",
      subdirectory: "ReadingList.momd"
    )
    guard let file, let model = NSManagedObjectModel(contentsOf: file) else {
      fatalError("The first version of the model is missing.")
    }
    for entity in model.entities { entity.managedObjectClassName = "NSManagedObject" }
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
    let store = try coordinator.addPersistentStore(type: .sqlite, at: url)
    let context = NSManagedObjectContext(concurrencyType: .privateQueueConcurrencyType)
    context.persistentStoreCoordinator = coordinator
    try context.performAndWait {
      let author = NSEntityDescription.insertNewObject(forEntityName: "Author", into: context)
      author.setValue("Ursula K. Le Guin", forKey: "name")
      for title in ["The Dispossessed", "The Left Hand of Darkness"] {
        let book = NSEntityDescription.insertNewObject(forEntityName: "Book", into: context)
        book.setValue(title, forKey: "title")
        book.setValue(author, forKey: "author")
      }
      try context.save()
    }
    try coordinator.remove(store)
  }
}
