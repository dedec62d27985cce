import Foundation
import OpenCoreData
import Testing

/// As with Apple's in-memory store, which evaluates predicates and orders on its objects.
@Suite("Fetches from in-memory stores beyond SQL")
struct InMemoryStoreFetchTests {
  private let container: NSPersistentContainer
  private let context: NSManagedObjectContext

  init() throws {
    container = try FetchWorld.container(posts: 10, type: NSInMemoryStoreType)
    context = container.newBackgroundContext()
  }

  /// The posts with more than six views, in an order that only Swift can compute: the last title
  /// first.
  private func request<Result>(_: Result.Type = WorldPost.self) -> NSFetchRequest<Result> {
    let request = NSFetchRequest<Result>(entityName: "Post")
    request.predicate = NSPredicate { object, _ in
      ((object as? NSManagedObject)?.value(forKey: "views") as? Int ?? 0) > 6
    }
    request.sortDescriptors = [
      NSSortDescriptor(key: "title", ascending: true) { left, right in
        ("\(right)" as NSString).compare("\(left)")
      }
    ]
    return request
  }

  @Test("A block filters and a comparator sorts, before offset and limit")
  func objects() throws {
    try context.performAndWait {
      let request = request()
      let all = try context.fetch(request)
      #expect(all.map(\.views) == [9, 8, 7])
      #expect(try context.count(for: request) == 3)
      request.fetchOffset = 1
      request.fetchLimit = 1
      #expect(try context.fetch(request).map(\.views) == [8])
      #expect(try context.count(for: request) == 1)
      request.fetchBatchSize = 1
      #expect(try context.fetch(request).map(\.views) == [8])
    }
  }

  @Test("Such fetches return identifiers and dictionaries like objects")
  func otherResults() throws {
    try context.performAndWait {
      let identifiers = request(NSManagedObjectID.self)
      identifiers.resultType = .managedObjectIDResultType
      let objects = try context.fetch(request())
      #expect(try context.fetch(identifiers) == objects.map(\.objectID))
      let dictionaries = request(NSDictionary.self)
      dictionaries.resultType = .dictionaryResultType
      dictionaries.propertiesToFetch = ["views", "author"]
      dictionaries.fetchLimit = 2
      let found = try context.fetch(dictionaries)
      #expect(found.map { $0["views"] as? Int } == [9, 8])
      #expect(
        found.map { $0["author"] as? NSManagedObjectID }
          == objects.prefix(2).map { $0.author?.objectID }
      )
    }
  }

  @Test("Such fetches find unsaved objects, also in a child context")
  func pendingChanges() throws {
    try context.performAndWait {
      let objects = try context.fetch(request())
      objects[0].views = 0
      let post = WorldPost(context: context)
      post.title = "post 99"
      post.views = 100
      #expect(try context.fetch(request()).map(\.views) == [100, 8, 7])
      let child = NSManagedObjectContext(concurrencyType: .privateQueueConcurrencyType)
      child.parent = context
      let count = try child.performAndWait { try child.count(for: request()) }
      #expect(count == 3)
    }
  }

  @Test("An asynchronous fetch finds the same objects")
  func asynchronous() async throws {
    let context = context
    let count = try await withCheckedThrowingContinuation {
      (continuation: CheckedContinuation<Int?, any Error>) in
      context.performAndWait {
        let asynchronous = NSAsynchronousFetchRequest(fetchRequest: request()) { result in
          continuation.resume(returning: result.finalResult?.count)
        }
        do { try context.execute(asynchronous) } catch { continuation.resume(throwing: error) }
      }
    }
    #expect(count == 3)
  }

  @Test("A predicate may use a property that no store has")
  func transientProperty() throws {
    let model = FetchWorld.model()
    let rank = NSAttributeDescription()
    rank.name = "rank"
    rank.attributeType = .integer64AttributeType
    rank.isTransient = true
    rank.isOptional = true
    let author = try #require(model.entitiesByName["Author"])
    author.properties.append(rank)
    let container = NSPersistentContainer(name: "World", managedObjectModel: model)
    let description = NSPersistentStoreDescription()
    description.type = NSInMemoryStoreType
    container.persistentStoreDescriptions = [description]
    container.loadPersistentStores { _, error in #expect(error == nil) }
    let context = container.newBackgroundContext()
    try context.performAndWait {
      let ada = WorldAuthor(context: context)
      ada.name = "Ada"
      try context.save()
      let request = NSFetchRequest<WorldAuthor>(entityName: "Author")
      request.predicate = NSPredicate(format: "rank == nil")
      #expect(try context.fetch(request) == [ada])
      request.predicate = NSPredicate(format: "rank == 3")
      #expect(try context.fetch(request).isEmpty)
    }
  }

  @Test("Rows that were read inside a failed transaction are not cached")
  func failedTransaction() throws {
    let library = try Library(inMemory: true)
    let context = library.context()
    let identifier = try context.performAndWait {
      let reader = Reader(context: context)
      reader.age = 20
      try context.save()
      return reader.objectID
    }
    let store = try #require(library.container.persistentStoreCoordinator.sqliteStore())
    let reference = try #require(identifier.reference)
    guard case .attribute(let slot)? = identifier.entity.layout.slot(named: "age") else {
      Issue.record("The layout has no age.")
      return
    }
    store.forget([reference])
    #expect(throws: CancellationError.self) {
      try store.write(author: nil, contextName: nil) { transaction in
        try transaction.update(reference, set: [slot: .integer(99)])
        _ = try store.rows([reference], .cached)
        throw CancellationError()
      }
    }
    #expect(try store.rows([reference], .cached).first??[slot] == .integer(20))
  }
}
