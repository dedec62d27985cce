import Foundation
import OpenCoreData

/// A container of the catalog's model over one store.
struct CatalogStack {
  let container: NSPersistentContainer
  let context: NSManagedObjectContext

  var coordinator: NSPersistentStoreCoordinator { container.persistentStoreCoordinator }

  init(
    _ url: URL,
    type: String = NSSQLiteStoreType,
    options: [String: NSObject] = [:]
  ) throws {
    container = NSPersistentContainer(
      name: "Catalog",
      managedObjectModel: LibraryCatalogModel.make()
    )
    let description = NSPersistentStoreDescription(url: url)
    description.type = type
    for (key, value) in options { description.setOption(value, forKey: key) }
    container.persistentStoreDescriptions = [description]
    var failure: (any Error)?
    container.loadPersistentStores { _, error in failure = error }
    if let failure { throw failure }
    context = container.newBackgroundContext()
  }

  /// Inserts an author with three works and saves.
  @discardableResult
  func fill() throws -> NSManagedObject {
    try context.performAndWait {
      let author = NSEntityDescription.insertNewObject(forEntityName: "Author", into: context)
      author.setValue("Wisława", forKey: "name")
      author.setValue(1923, forKey: "born")
      for (index, title) in ["Salt", "View", "Here"].enumerated() {
        let work = NSEntityDescription.insertNewObject(forEntityName: "Work", into: context)
        work.setValue(title, forKey: "title")
        work.setValue(10 * (index + 1), forKey: "pages")
        work.setValue(Date(timeIntervalSinceReferenceDate: 0.5), forKey: "printed")
        work.setValue(author, forKey: "writer")
      }
      try context.save()
      return author
    }
  }

  /// The titles of an author's works, as the stores have them.
  func titles() throws -> [String] {
    let reader = container.newBackgroundContext()
    return try reader.performAndWait {
      let request = NSFetchRequest<NSManagedObject>(entityName: "Work")
      request.predicate = NSPredicate(format: "writer.name == %@", "Wisława")
      request.sortDescriptors = [NSSortDescriptor(key: "pages", ascending: true)]
      return try reader.fetch(request).compactMap { $0.value(forKey: "title") as? String }
    }
  }

  func close() throws {
    for store in coordinator.persistentStores { try coordinator.remove(store) }
  }
}
