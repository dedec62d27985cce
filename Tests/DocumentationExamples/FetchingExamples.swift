import CoreData
import Foundation
import Testing

// example: NSFetchedResultsControllerDelegate
final class PostList: NSObject, NSFetchedResultsControllerDelegate {
  private(set) var titles: [String] = []

  func controllerDidChangeContent(
    _ controller: NSFetchedResultsController<any NSFetchRequestResult>
  ) {
    titles = (controller.fetchedObjects ?? []).compactMap { ($0 as? Post)?.title }
  }
}
// end

@Suite("Examples: fetching")
struct FetchingExamples {
  /// A context with three posts, the second of which has an author.
  private func context() throws -> NSManagedObjectContext {
    let context = try Blog.inMemory().newBackgroundContext()
    try context.performAndWait {
      let posts = try context.addPosts("Swift on Linux", "Milk", "Swift again")
      let author = Author(context: context)
      author.name = "Ada"
      posts[1].author = author
      posts[2].rating = 4
      posts[2].author = author
      try context.save()
    }
    return context
  }

  @Test("A fetch request finds objects by a predicate, in order, with their authors")
  func fetchRequest() throws {
    let context = try context()
    try context.performAndWait {
      // example: NSFetchRequest
      let request = NSFetchRequest<Post>(entityName: "Post")
      request.predicate = NSPredicate(format: "title BEGINSWITH %@", "Swift")
      request.sortDescriptors = [NSSortDescriptor(key: "created", ascending: false)]
      request.fetchLimit = 20
      request.relationshipKeyPathsForPrefetching = ["author"]
      let posts = try context.fetch(request)
      // end
      #expect(posts.map(\.title) == ["Swift again", "Swift on Linux"])
    }
  }

  @Test("The store counts and adds up without loading objects")
  func dictionaries() throws {
    let context = try context()
    try context.performAndWait {
      // example: Dictionaries
      let sum = NSExpressionDescription()
      sum.name = "total"
      sum.expression = NSExpression(format: "sum:(rating)")
      sum.expressionResultType = .integer64AttributeType

      let request = NSFetchRequest<NSDictionary>(entityName: "Post")
      request.resultType = .dictionaryResultType
      request.propertiesToFetch = ["author.name", sum]
      request.propertiesToGroupBy = ["author.name"]
      for row in try context.fetch(request) {
        print(row["author.name"] ?? "without author", row["total"] ?? 0)
      }
      // end
      let totals = try context.fetch(request).map { $0["total"] as? Int }
      #expect(Set(totals) == [0, 4])
    }
  }

  @Test("An expression computes a column of dictionaries")
  func expressionDescription() throws {
    let context = try context()
    try context.performAndWait {
      // example: NSExpressionDescription
      let best = NSExpressionDescription()
      best.name = "best"
      best.expression = NSExpression(format: "max:(rating)")
      best.resultType = .integer16

      let request = NSFetchRequest<NSDictionary>(entityName: "Post")
      request.resultType = .dictionaryResultType
      request.propertiesToFetch = [best]
      let row = try context.fetch(request).first  // ["best": 4]
      // end
      #expect(row?["best"] as? Int == 4)
    }
  }

  @Test("A predicate is built of expressions, and evaluates an object too")
  func expressions() throws {
    let context = try context()
    try context.performAndWait {
      // example: NSComparisonPredicate
      let predicate = NSComparisonPredicate(
        leftExpression: NSExpression(forKeyPath: "title"),
        rightExpression: NSExpression(forConstantValue: "swift"),
        modifier: .direct,
        type: .beginsWith,
        options: [.caseInsensitive, .diacriticInsensitive]
      )
      print(predicate.predicateFormat)  // title BEGINSWITH[cd] "swift"
      // end
      #expect(predicate.predicateFormat == "title BEGINSWITH[cd] \"swift\"")
      let request = NSFetchRequest<Post>(entityName: "Post")
      request.predicate = predicate
      #expect(try context.count(for: request) == 2)

      let post = try #require(try context.fetch(request).first)
      post.rating = 4
      // example: NSExpression
      let expression = NSExpression(format: "rating * 2 + 1")
      let value = expression.expressionValue(with: post, context: nil) as? Int
      // end
      #expect(value == 9)
    }
  }

  @Test("A request takes over the settings of another one")
  func sameAs() throws {
    // example: NSFetchRequest.init(sameAs:)
    let anyRequest = NSFetchRequest<any NSFetchRequestResult>(sameAs: NSFetchRequest<Post>())
    // end
    #expect(anyRequest.fetchLimit == 0)
  }

  @Test("Predicates take values, key paths and subqueries")
  func predicates() throws {
    let context = try context()
    try context.performAndWait {
      let start = Date(timeIntervalSinceReferenceDate: 60)
      // example: NSPredicate
      let request = NSFetchRequest<Post>(entityName: "Post")
      request.predicate = NSPredicate(
        format: "created >= %@ AND %K CONTAINS[cd] %@",
        start,
        "title",
        "swift"
      )
      let posts = try context.fetch(request)

      let authors = NSFetchRequest<Author>(entityName: "Author")
      authors.predicate = NSPredicate(
        format: "SUBQUERY(posts, $post, $post.rating > %d).@count > 0",
        3
      )
      let popular = try context.fetch(authors)
      // end
      #expect(posts.map(\.title) == ["Swift again"])
      #expect(popular.map(\.name) == ["Ada"])
    }
  }

  @Test("A predicate can be a Swift expression")
  func macroPredicate() throws {
    let context = try context()
    try context.performAndWait {
      // example: #Predicate
      let request = NSFetchRequest<Post>(entityName: "Post")
      request.predicate = NSPredicate(#Predicate<Post> { $0.rating > 3 && !$0.isRead })
      let unread = try context.fetch(request)
      // end
      #expect(unread.map(\.title) == ["Swift again"])
    }
  }

  @Test("A fetched results controller reports changes of its list")
  func fetchedResults() throws {
    let context = try context()
    let list = PostList()
    try context.performAndWait {
      // example: NSFetchedResultsController
      let request = NSFetchRequest<Post>(entityName: "Post")
      request.sortDescriptors = [NSSortDescriptor(key: "created", ascending: false)]
      let controller = NSFetchedResultsController(
        fetchRequest: request,
        managedObjectContext: context,
        sectionNameKeyPath: nil,
        cacheName: nil
      )
      controller.delegate = list
      try controller.performFetch()
      // end
      let post = Post(context: context)
      post.title = "New"
      post.created = Date(timeIntervalSinceReferenceDate: 1000)
      context.processPendingChanges()
      #expect(list.titles.first == "New")
      #expect(controller.fetchedObjects?.count == 4)
    }
  }

  private func show(_ posts: [Post]) {}

  // Compiled and not run: it waits for changes until its task is cancelled.
  private func updates(
    _ context: NSManagedObjectContext,
    _ request: NSFetchRequest<Post>
  ) async throws {
    // example: FetchedResultsUpdates
    for try await list in context.updates(of: request) {
      await context.perform { show(list.objects(in: context)) }
    }
    // end
  }

  @Test("The lists of a request arrive as an asynchronous sequence")
  func firstUpdate() async throws {
    let context = try context()
    let request = NSFetchRequest<Post>(entityName: "Post")
    request.sortDescriptors = [NSSortDescriptor(key: "created", ascending: true)]
    for try await list in context.updates(of: request) {
      #expect(list.objectIDs.count == 3)
      break
    }
  }

  @Test("Batches of objects release those that the program has passed")
  func batches() async throws {
    let context = try context()
    let request = NSFetchRequest<Post>(entityName: "Post")
    // example: ObjectBatches
    for try await batch in context.batches(matching: request, size: 500) {
      await context.perform { for post in batch { post.isRead = true } }
    }
    // end
    try await context.perform {
      // example: BatchedObjects
      for post in try context.objects(matching: request, batchSize: 500) {
        print(post.title ?? "")
      }
      // end
      #expect(try context.objects(matching: request, batchSize: 2).count == 3)
    }
  }

  @Test("An asynchronous fetch reads its rows on another thread")
  func asynchronousFetch() async throws {
    let context = try context()
    let count = try await withCheckedThrowingContinuation {
      (continuation: CheckedContinuation<Int, any Error>) in
      context.perform {
        do {
          // example: NSAsynchronousFetchRequest
          let request = NSFetchRequest<Post>(entityName: "Post")
          let fetch = NSAsynchronousFetchRequest(fetchRequest: request) { result in
            continuation.resume(returning: result.finalResult?.count ?? 0)
          }
          try context.execute(fetch)
          // end
        } catch {
          continuation.resume(throwing: error)
        }
      }
    }
    #expect(count == 3)
  }
}
