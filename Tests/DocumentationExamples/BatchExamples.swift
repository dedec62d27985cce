import CoreData
import Foundation
import Testing

@Suite("Examples: batches and history")
struct BatchExamples {
  @Test("Batch requests insert, update and delete rows in the store")
  func batches() async throws {
    try await Blog.withFolder { folder in
      let container = try Blog.container(at: folder.appendingPathComponent("Blog.sqlite"))
      let context = container.newBackgroundContext()
      try await context.perform {
        // example: NSBatchInsertRequest
        var titles = ["One", "Two", "Three"].makeIterator()
        let insert = NSBatchInsertRequest(entityName: "Post") { (row: NSMutableDictionary) in
          guard let title = titles.next() else { return true }
          row["title"] = title
          return false
        }
        insert.resultType = .objectIDs
        let inserted = try context.execute(insert) as? NSBatchInsertResult
        let objectIDs = inserted?.result as? [NSManagedObjectID] ?? []
        NSManagedObjectContext.mergeChanges(
          fromRemoteContextSave: [NSInsertedObjectsKey: objectIDs],
          into: [context]
        )
        // end
        #expect(objectIDs.count == 3)

        // example: NSBatchUpdateRequest
        let update = NSBatchUpdateRequest(entityName: "Post")
        update.predicate = NSPredicate(format: "title BEGINSWITH %@", "T")
        update.propertiesToUpdate = ["isRead": true]
        update.resultType = .updatedObjectsCountResultType
        let updated = try context.execute(update) as? NSBatchUpdateResult
        let count = updated?.result as? Int
        // end
        #expect(count == 2)

        // example: NSBatchDeleteRequest
        let read = NSFetchRequest<Post>(entityName: "Post")
        read.predicate = NSPredicate(format: "isRead == YES")
        try context.execute(NSBatchDeleteRequest(fetchRequest: read))
        // end
        #expect(try context.count(for: NSFetchRequest<Post>(entityName: "Post")) == 1)
      }
      try container.removeStores()
    }
  }

  @Test("History has the transactions of other authors after a token")
  func history() async throws {
    try await Blog.withFolder { folder in
      let container = try Blog.container(at: folder.appendingPathComponent("Blog.sqlite"))
      let importer = container.newBackgroundContext()
      importer.transactionAuthor = "import"
      try await importer.perform { try importer.addPosts("One", "Two") }
      var token: NSPersistentHistoryToken?
      var names: [String] = []
      let context = container.newBackgroundContext()
      try await context.perform {
        // example: NSPersistentHistoryChangeRequest
        let request = NSPersistentHistoryChangeRequest.fetchHistory(after: token)
        let history = try context.execute(request) as? NSPersistentHistoryResult
        for transaction in history?.result as? [NSPersistentHistoryTransaction] ?? [] {
          for change in transaction.changes ?? [] where transaction.author == "import" {
            names.append(change.changedObjectID.entity.name ?? "")
          }
          token = transaction.token  // keep it where the next launch finds it
        }
        // end
        #expect(names == ["Post", "Post"])

        // example: Deleting history
        try context.execute(NSPersistentHistoryChangeRequest.deleteHistory(before: token))
        // end
        let after = NSPersistentHistoryChangeRequest.fetchHistory(after: token)
        let rest = try context.execute(after) as? NSPersistentHistoryResult
        #expect((rest?.result as? [NSPersistentHistoryTransaction])?.isEmpty == true)
      }
      try container.removeStores()
    }
  }

  @Test("A store with history has the option for it")
  func tracking() {
    let url = URL(fileURLWithPath: "/dev/null")
    // example: History tracking
    let description = NSPersistentStoreDescription(url: url)
    description.setOption(true as NSNumber, forKey: NSPersistentHistoryTrackingKey)
    description.setOption(
      true as NSNumber,
      forKey: NSPersistentStoreRemoteChangeNotificationPostOptionKey
    )
    // end
    #expect(description.options[NSPersistentHistoryTrackingKey] != nil)
  }
}

extension NSPersistentContainer {
  /// Closes the stores, so that their folder can be removed.
  func removeStores() throws {
    for store in persistentStoreCoordinator.persistentStores {
      try persistentStoreCoordinator.remove(store)
    }
  }
}
