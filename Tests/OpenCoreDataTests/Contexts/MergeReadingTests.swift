import Foundation
import OpenCoreData
import Testing

/// An article, which counts in its context how often a row was read into an object.
final class ReadArticle: NSManagedObject {
  override func awakeFromFetch() {
    guard let notes = managedObjectContext?.userInfo else { return }
    notes["read"] = Self.readCount(notes) + 1
  }

  static func readCount(_ notes: NSMutableDictionary) -> Int { notes["read"] as? Int ?? 0 }
}

/// What a merge reads of rows that the context has no objects of.
@Suite("Merges of rows without objects")
struct MergeReadingTests {
  /// Topics with articles, and contexts of two coordinators on one file.
  private struct World {
    let folder: ScratchFolder
    let context: NSManagedObjectContext
    let other: NSManagedObjectContext

    init(articles: Int, type: NSPersistentStore.StoreType = .sqlite) throws {
      folder = try ScratchFolder()
      let coordinator = NSPersistentStoreCoordinator(managedObjectModel: Self.model())
      try coordinator.addPersistentStore(type: type, at: folder.file("articles"))
      context = NSManagedObjectContext(of: coordinator)
      if type == .sqlite {
        let second = NSPersistentStoreCoordinator(managedObjectModel: Self.model())
        try second.addPersistentStore(type: .sqlite, at: folder.file("articles"))
        other = NSManagedObjectContext(of: second)
      } else {
        other = NSManagedObjectContext(of: coordinator)
      }
      try other.performAndWait {
        let topics = ["first", "second"].map { other.insert("Topic", ["name": $0]) }
        for number in 0..<articles {
          let article = other.insert("Article", ["number": number, "title": "old"])
          article.setValue(topics[0], forKey: "topic")
        }
        try other.save()
      }
    }

    private static func model() -> NSManagedObjectModel {
      let title = ModelParts.text("title") { $0.isOptional = true }
      let topic = ModelParts.entity("Topic", [ModelParts.text("name")])
      let article = ModelParts.entity("Article", [ModelParts.number("number"), title])
      article.managedObjectClassName = NSStringFromClass(ReadArticle.self)
      let articles = ModelParts.relate(topic, "articles", toMany: true, article, "topic")
      articles.isOptional = true
      articles.inverseRelationship?.isOptional = true
      return MigrationBench.model(topic, article)
    }

    /// Changes all articles in the other context; returns the notification of the save.
    func change(
      _ body: (NSManagedObject, Int, _ topics: [NSManagedObject]) -> Void
    ) throws -> Notification {
      try other.performAndWait {
        nonisolated(unsafe) var notification: Notification?
        let observer = NotificationCenter.default.addObserver(
          forName: .NSManagedObjectContextDidSave,
          object: other,
          queue: nil
        ) { notification = $0 }
        defer { NotificationCenter.default.removeObserver(observer) }
        let topics = try other.all("Topic", by: "name")
        for (number, article) in try other.all("Article", by: "number").enumerated() {
          body(article, number, topics)
        }
        try other.save()
        return try #require(notification)
      }
    }

    /// The identifiers of a notification's updated articles.
    func articles(_ notification: Notification) -> [NSManagedObjectID] {
      let objects = notification.userInfo?[NSUpdatedObjectsKey] as? Set<NSManagedObject> ?? []
      return objects.filter { $0.entity.name == "Article" }.map(\.objectID)
    }
  }

  private final class Recorder: NSObject, NSFetchedResultsControllerDelegate {
    var inserted: [Int?] = []

    func controller(
      _ controller: NSFetchedResultsController<any NSFetchRequestResult>,
      didChange anObject: Any,
      at indexPath: IndexPath?,
      for type: NSFetchedResultsChangeType,
      newIndexPath: IndexPath?
    ) {
      guard type == .insert, let object = anObject as? NSManagedObject else { return }
      inserted.append(object.value(forKey: "number") as? Int)
    }
  }

  /// A controller that has fetched; to be called on the context's queue.
  private func fetchedController(
    _ request: NSFetchRequest<NSManagedObject>,
    _ context: NSManagedObjectContext,
    delegate: Recorder
  ) throws -> NSFetchedResultsController<NSManagedObject> {
    let controller = NSFetchedResultsController(
      fetchRequest: request,
      managedObjectContext: context,
      sectionNameKeyPath: nil,
      cacheName: nil
    )
    controller.delegate = delegate
    try controller.performFetch()
    return controller
  }

  @Test(
    "A controller makes objects of those changed rows alone that match its predicate",
    arguments: [NSPersistentStore.StoreType.sqlite, .inMemory]
  )
  func controllers(type: NSPersistentStore.StoreType) throws {
    let world = try World(articles: 1200, type: type)
    let context = world.context
    let request = NSFetchRequest<NSManagedObject>(entityName: "Article")
    request.predicate = NSPredicate(format: "title == 'new' AND topic.name == 'first'")
    request.sortDescriptors = [NSSortDescriptor(key: "number", ascending: true)]
    let recorder = Recorder()
    let controller = try context.performAndWait {
      try fetchedController(request, context, delegate: recorder)
    }
    let notification = try world.change { article, number, _ in
      article.setValue(number % 400 == 7 ? "new" : "newer", forKey: "title")
    }
    context.performAndWait {
      context.mergeChanges(fromContextDidSave: notification)
      #expect(recorder.inserted == [7, 407, 807])
      #expect(controller.fetchedObjects?.count == 3)
      #expect(ReadArticle.readCount(context.userInfo) == 3)
      #expect(context.registeredObjects.count <= 4)
    }
  }

  @Test("Unsaved changes of the merging context decide which changed rows a controller takes")
  func unsavedChanges() throws {
    let world = try World(articles: 3)
    let context = world.context
    let request = NSFetchRequest<NSManagedObject>(entityName: "Article")
    request.predicate = NSPredicate(format: "title == 'new' AND topic.name == 'third'")
    request.sortDescriptors = [NSSortDescriptor(key: "number", ascending: true)]
    let recorder = Recorder()
    let controller = try context.performAndWait {
      let controller = try fetchedController(request, context, delegate: recorder)
      try context.all("Topic", by: "name").first?.setValue("third", forKey: "name")
      return controller
    }
    let notification = try world.change { article, _, _ in article.setValue("new", forKey: "title")
    }
    context.performAndWait {
      context.mergeChanges(fromContextDidSave: notification)
      #expect(recorder.inserted == [0, 1, 2])
      #expect(controller.fetchedObjects?.count == 3)
    }
  }

  @Test(
    "A merge adds an object to the to-many of its owner if the save notification does not name the owner"
  )
  func ownerWithoutChange() throws {
    let world = try World(articles: 1, type: .inMemory)
    let context = world.context
    context.automaticallyMergesChangesFromParent = true
    let topics = try context.performAndWait {
      let topics = try context.all("Topic", by: "name")
      #expect((topics[1].value(forKey: "articles") as? NSSet)?.count == 0)
      return topics
    }
    _ = try world.change { article, _, topics in
      article.setValue(topics[1], forKey: "topic")
      article.managedObjectContext?.refresh(topics[1], mergeChanges: false)
      article.managedObjectContext?.refresh(topics[0], mergeChanges: false)
    }
    context.performAndWait {
      #expect((topics[1].value(forKey: "articles") as? NSSet)?.count == 1)
    }
  }

  @Test("A controller of a child context takes the changed rows that match")
  func childContext() throws {
    let world = try World(articles: 1200)
    let child = NSManagedObjectContext(.privateQueue)
    child.parent = world.context
    child.automaticallyMergesChangesFromParent = true
    let request = NSFetchRequest<NSManagedObject>(entityName: "Article")
    request.predicate = NSPredicate(format: "title == 'new'")
    request.sortDescriptors = [NSSortDescriptor(key: "number", ascending: true)]
    let recorder = Recorder()
    let controller = try child.performAndWait {
      try fetchedController(request, child, delegate: recorder)
    }
    let notification = try world.change { article, number, _ in
      article.setValue(number % 400 == 7 ? "new" : "newer", forKey: "title")
    }
    world.context.performAndWait { world.context.mergeChanges(fromContextDidSave: notification) }
    // The child's merge was queued before.
    child.performAndWait {
      #expect(recorder.inserted == [7, 407, 807])
      #expect(controller.fetchedObjects?.count == 3)
    }
  }

  /// Prints the statements of merging changes of all articles, of which one joins a loaded relationship.
  private static func printMerge(
    of articles: Int,
    _ merge: (World, Notification) -> Void
  ) throws {
    PrintedSQL.turnOn()
    let world = try World(articles: articles)
    let topics = try world.context.performAndWait {
      let topics = try world.context.all("Topic", by: "name")
      // Only the articles of the second topic, of which there are none, are loaded.
      precondition((topics[1].value(forKey: "articles") as? NSSet)?.count == 0)
      return topics
    }
    let notification = try world.change { article, number, topics in
      article.setValue("new", forKey: "title")
      if number == 7 { article.setValue(topics[1], forKey: "topic") }
    }
    world.context.performAndWait {
      PrintedSQL.printMark()
      merge(world, notification)
      PrintedSQL.printMark()
      precondition((topics[1].value(forKey: "articles") as? NSSet)?.count == 1)
    }
  }

  @Test("Merging a save reads no rows of objects that the context has not registered")
  func saves() async throws {
    let result = await #expect(
      processExitsWith: .success,
      observing: [\.standardErrorContent]
    ) {
      try Self.printMerge(of: 50) { world, notification in
        world.context.mergeChanges(fromContextDidSave: notification)
      }
    }
    let read = try PrintedSQL(result).fetches.filter { $0.sql.contains("ZARTICLE") }
    #expect(read.isEmpty)
  }

  @Test("Only the references of rows without owners are read, in portions")
  func rowsWithoutOwners() async throws {
    let result = await #expect(
      processExitsWith: .success,
      observing: [\.standardErrorContent]
    ) {
      try Self.printMerge(of: 2500) { world, notification in
        NSManagedObjectContext.mergeChanges(
          fromRemoteContextSave: [NSUpdatedObjectIDsKey: world.articles(notification)],
          into: [world.context]
        )
      }
    }
    let read = try PrintedSQL(result).fetches.filter { $0.sql.contains("ZARTICLE") }
    #expect(read.map(\.rows).reduce(0, +) == 2500)
    #expect(read.allSatisfy { $0.rows <= 1000 && !$0.sql.contains("ZTITLE") })
  }
}
