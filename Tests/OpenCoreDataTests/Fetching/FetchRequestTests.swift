import Foundation
import OpenCoreData
import Testing

@Suite("Fetch requests")
struct FetchRequestTests {
  @Test("A new request has Core Data's defaults")
  func defaults() {
    let request = NSFetchRequest<WorldPost>(entityName: "Post")
    #expect(request.entityName == "Post")
    #expect(request.requestType == .fetchRequestType)
    #expect(request.predicate == nil)
    #expect(request.sortDescriptors == nil)
    #expect(request.fetchLimit == 0)
    #expect(request.fetchOffset == 0)
    #expect(request.fetchBatchSize == 0)
    #expect(request.resultType == .managedObjectResultType)
    #expect(request.includesSubentities)
    #expect(request.includesPropertyValues)
    #expect(request.returnsObjectsAsFaults)
    #expect(request.includesPendingChanges)
    #expect(request.relationshipKeyPathsForPrefetching == nil)
    #expect(!request.returnsDistinctResults)
    #expect(request.propertiesToFetch == nil)
    #expect(request.propertiesToGroupBy == nil)
    #expect(request.havingPredicate == nil)
    #expect(!request.shouldRefreshRefetchedObjects)
    #expect(request.affectedStores == nil)
  }

  @Test("A copy of a request is equal and independent")
  func copying() throws {
    let request = FetchWorld.request()
    request.predicate = NSPredicate(format: "views > 1")
    request.fetchLimit = 3
    request.fetchBatchSize = 20
    request.propertiesToFetch = ["title"]
    let copy = try #require(request.copy() as? NSFetchRequest<WorldPost>)
    #expect(copy !== request)
    #expect(copy.entityName == "Post")
    #expect(copy.predicate == request.predicate)
    #expect(copy.fetchLimit == 3)
    #expect(copy.fetchBatchSize == 20)
    copy.fetchLimit = 5
    #expect(request.fetchLimit == 3)
  }

  @Test("execute() runs in the context of the calling block")
  func execute() async throws {
    let container = try FetchWorld.container(posts: 3)
    let context = container.newBackgroundContext()
    let titles = try await context.perform {
      let request = FetchWorld.request()
      return try request.execute().map(\.title)
    }
    #expect(titles == ["post 00", "post 01", "post 02"])
    let counts = try context.performAndWait {
      let request = NSFetchRequest<NSNumber>(entityName: "Post")
      request.resultType = .countResultType
      return try request.execute()
    }
    #expect(counts == [3])
  }

  @Test("Objects are returned as faults, or with values if the request asks for them")
  func faults() throws {
    let container = try FetchWorld.container(posts: 3)
    let context = container.newBackgroundContext()
    try context.performAndWait {
      let request = FetchWorld.request()
      let faults = try context.fetch(request)
      #expect(faults.allSatisfy { $0.isFault })
      #expect(faults[0].title == "post 00")
      #expect(!faults[0].isFault)
      context.reset()
      request.returnsObjectsAsFaults = false
      try #expect(context.fetch(request).allSatisfy { !$0.isFault })
      context.reset()
      request.returnsObjectsAsFaults = true
      request.includesPropertyValues = false
      let bare = try context.fetch(request)
      #expect(bare.allSatisfy { $0.isFault })
      #expect(bare.map(\.title) == ["post 00", "post 01", "post 02"])
    }
  }

  @Test("An object that is fetched again keeps its values, unless the request refreshes them")
  func refreshing() throws {
    let container = try FetchWorld.container(posts: 2)
    let reader = container.newBackgroundContext()
    let writer = container.newBackgroundContext()
    try reader.performAndWait {
      let request = FetchWorld.request()
      let post = try #require(try reader.fetch(request).first)
      #expect(post.views == 0)
      try writer.performAndWait {
        try writer.fetch(FetchWorld.request())[0].views = 77
        try writer.save()
      }
      _ = try reader.fetch(request)
      #expect(post.views == 0)
      request.shouldRefreshRefetchedObjects = true
      _ = try reader.fetch(request)
      #expect(post.views == 77)
    }
  }

  @Test("Sub-entities are included or excluded")
  func subentities() throws {
    let container = try FetchWorld.container(posts: 1)
    let context = container.newBackgroundContext()
    try context.performAndWait {
      WorldPhotoPost(context: context).title = "photo"
      try context.save()
      let request = FetchWorld.request()
      try #expect(context.fetch(request).map(\.title) == ["photo", "post 00"])
      request.includesSubentities = false
      try #expect(context.fetch(request).map(\.title) == ["post 00"])
      try #expect(context.count(for: request) == 1)
    }
  }

  @Test("Only the affected stores are searched")
  func affectedStores() throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("stores-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    let container = NSPersistentContainer(name: "World", managedObjectModel: FetchWorld.model())
    container.persistentStoreDescriptions = ["a", "b"].map {
      NSPersistentStoreDescription(url: folder.appendingPathComponent("\($0).sqlite"))
    }
    container.loadPersistentStores { _, error in #expect(error == nil) }
    let stores = container.persistentStoreCoordinator.persistentStores
    let context = container.newBackgroundContext()
    try context.performAndWait {
      for (number, store) in stores.enumerated() {
        let post = WorldPost(context: context)
        post.title = "in \(number)"
        context.assign(post, to: store)
      }
      try context.save()
      let request = FetchWorld.request()
      try #expect(context.fetch(request).map(\.title) == ["in 0", "in 1"])
      request.affectedStores = [stores[1]]
      try #expect(context.fetch(request).map(\.title) == ["in 1"])
      try #expect(context.count(for: request) == 1)
    }
    for store in stores { try container.persistentStoreCoordinator.remove(store) }
  }

  @Test("Unsaved changes affect objects, identifiers and counts, in order")
  func pendingChanges() throws {
    let container = try FetchWorld.container(posts: 6)
    let context = container.newBackgroundContext()
    try context.performAndWait {
      let posts = try context.fetch(FetchWorld.request())
      context.delete(posts[0])
      posts[1].title = "zz"
      WorldPost(context: context).title = "aa"
      let request = FetchWorld.request()
      try #expect(
        context.fetch(request).map(\.title)
          == ["aa", "post 02", "post 03", "post 04", "post 05", "zz"]
      )
      request.fetchOffset = 1
      request.fetchLimit = 2
      try #expect(context.fetch(request).map(\.title) == ["post 02", "post 03"])
      try #expect(context.count(for: request) == 2)

      let identifiers = NSFetchRequest<NSManagedObjectID>(entityName: "Post")
      identifiers.resultType = .managedObjectIDResultType
      identifiers.sortDescriptors = [NSSortDescriptor(key: "title", ascending: true)]
      let found = try context.fetch(identifiers)
      #expect(found.count == 6)
      #expect(found[0].isTemporaryID)
      identifiers.includesPendingChanges = false
      try #expect(context.fetch(identifiers).count == 6)
      try #expect(!context.fetch(identifiers).contains { $0.isTemporaryID })

      // Dictionaries have stored values alone, as Core Data documents.
      let dictionaries = NSFetchRequest<NSDictionary>(entityName: "Post")
      dictionaries.resultType = .dictionaryResultType
      dictionaries.propertiesToFetch = ["title"]
      dictionaries.sortDescriptors = [NSSortDescriptor(key: "title", ascending: true)]
      try #expect(context.fetch(dictionaries).first?["title"] as? String == "post 00")
    }
  }

  @Test("A sort descriptor may follow a to-one")
  func sortingAlongRelationships() throws {
    let container = try FetchWorld.container(posts: 4)
    let context = container.newBackgroundContext()
    try context.performAndWait {
      let request = FetchWorld.request()
      request.sortDescriptors = [
        NSSortDescriptor(key: "author.name", ascending: false),
        NSSortDescriptor(key: "views", ascending: true),
      ]
      try #expect(context.fetch(request).map(\.views) == [1, 3, 0, 2])
      // With unsaved changes the objects are sorted in memory, in the same order.
      let author = try #require(try context.fetch(request).first?.author)
      let post = WorldPost(context: context)
      post.title = "new"
      post.author = author
      post.views = 2
      try #expect(context.fetch(request).map(\.views) == [1, 2, 3, 0, 2])
    }
  }

  @Test("A request erased to NSFetchRequestResult finds the same objects")
  func erased() throws {
    let container = try FetchWorld.container(posts: 2)
    let context = container.newBackgroundContext()
    try context.performAndWait {
      let request = NSFetchRequest<any NSFetchRequestResult>(entityName: "Post")
      let posts = try #require(try context.fetch(request) as? [WorldPost])
      #expect(posts.count == 2)
      try #expect(context.count(for: request) == 2)
      request.resultType = .dictionaryResultType
      request.propertiesToFetch = ["views"]
      try #expect((context.fetch(request) as? [[String: Any]])?.count == 2)
      request.resultType = .managedObjectIDResultType
      try #expect((context.fetch(request) as? [NSManagedObjectID])?.count == 2)
      request.resultType = .countResultType
      try #expect((context.fetch(request) as? [Int]) == [2])
      let coordinator = container.persistentStoreCoordinator
      try #expect((coordinator.execute(request, with: context) as? [NSNumber]) == [2])
    }
  }

  @Test("A fetch request is an expression that returns objects or their count")
  func fetchRequestExpressions() throws {
    let container = try FetchWorld.container(posts: 3)
    let context = container.newBackgroundContext()
    context.performAndWait {
      let request = NSFetchRequest<any NSFetchRequestResult>(entityName: "Post")
      request.predicate = NSPredicate(format: "views > 0")
      let count = NSFetchRequestExpression.expression(
        forFetch: NSExpression(forConstantValue: request),
        context: NSExpression(forConstantValue: context),
        countOnly: true
      )
      #expect(count.expressionType == NSFetchRequestExpressionType)
      #expect(count.expressionType.rawValue == 50)
      #expect((count as? NSFetchRequestExpression)?.isCountOnlyRequest == true)
      #expect(count.expressionValue(with: nil, context: nil) as? Int == 2)
      let objects = NSFetchRequestExpression.expression(
        forFetch: NSExpression(forConstantValue: request),
        context: NSExpression(forVariable: "CONTEXT"),
        countOnly: false
      )
      let found = objects.expressionValue(with: nil, context: ["CONTEXT": context])
      #expect((found as? [WorldPost])?.count == 2)
    }
  }

  // MARK: Errors for which Core Data raises an exception

  /// The output of a program that is stopped by such a fetch.
  private static func message(_ result: ExitTest.Result?) -> String {
    String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
  }

  private static func fetch(_ configure: (NSFetchRequest<any NSFetchRequestResult>) -> Void) throws
  {
    let container = try FetchWorld.container(posts: 1)
    let context = container.newBackgroundContext()
    let request = NSFetchRequest<any NSFetchRequestResult>(entityName: "Post")
    configure(request)
    context.performAndWait { _ = try? context.fetch(request) }
  }

  @Test("An unknown entity stops the program, with Apple's text")
  func unknownEntity() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let context = try FetchWorld.container().newBackgroundContext()
      context.performAndWait {
        _ = try? context.fetch(NSFetchRequest<any NSFetchRequestResult>(entityName: "Nope"))
      }
    }
    #expect(
      Self.message(result).contains(
        "executeFetchRequest:error: could not locate an entity named 'Nope' in this model."
      )
    )
    let second = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let context = try FetchWorld.container().newBackgroundContext()
      context.performAndWait { _ = try? context.fetch(NSFetchRequest<WorldPost>()) }
    }
    #expect(
      Self.message(second).contains(
        "executeFetchRequest:error: A fetch request must have an entity."
      )
    )
  }

  @Test("An invalid key path stops the program, in a predicate and in a sort descriptor")
  func unknownKeys() async {
    let predicate = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      try Self.fetch { $0.predicate = NSPredicate(format: "author.nope == 1") }
    }
    #expect(
      Self.message(predicate).contains(
        "keypath author.nope not found in entity <NSSQLEntity Post id="
      )
    )
    let order = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      try Self.fetch { $0.sortDescriptors = [NSSortDescriptor(key: "nope", ascending: true)] }
    }
    #expect(Self.message(order).contains("keypath nope not found in entity <NSSQLEntity Post id="))
    let property = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      try Self.fetch {
        $0.resultType = .dictionaryResultType
        $0.propertiesToFetch = ["nope"]
      }
    }
    #expect(Self.message(property).contains("Invalid keypath nope passed to setPropertiesToFetch:"))
    let toMany = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      try Self.fetch {
        $0.resultType = .dictionaryResultType
        $0.propertiesToFetch = ["tags"]
      }
    }
    #expect(Self.message(toMany).contains("Invalid to many relationship"))
  }

  @Test("A request that no store can execute stops the program")
  func unsupportedPredicates() async {
    let block = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      try Self.fetch { $0.predicate = NSPredicate { _, _ in true } }
    }
    #expect(Self.message(block).contains("Unsupported predicate BLOCKPREDICATE"))
    let toMany = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      try Self.fetch { $0.predicate = NSPredicate(format: "tags.name == 'x'") }
    }
    #expect(Self.message(toMany).contains("to-many key not allowed here"))
    let group = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      try Self.fetch {
        $0.resultType = .dictionaryResultType
        $0.propertiesToFetch = ["title", "views"]
        $0.propertiesToGroupBy = ["title"]
      }
    }
    #expect(
      Self.message(group).contains(
        "SELECT clauses in queries with GROUP BY components can only contain properties named in "
          + "the GROUP BY or aggregate functions"
      )
    )
  }

  @Test("execute() outside a context's block stops the program")
  func executeOutside() async {
    await #expect(processExitsWith: .failure) {
      _ = try? NSFetchRequest<WorldPost>(entityName: "Post").execute()
    }
  }
}
