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

  @Test("Transactions, changes and tokens of the history are merged and kept")
  func transactions() async throws {
    try await Blog.withFolder { folder in
      let container = try Blog.container(at: folder.appendingPathComponent("Blog.sqlite"))
      let writer = container.newBackgroundContext()
      try await writer.perform {
        let posts = try writer.addPosts("One", "Two")
        writer.delete(posts[0])
        try writer.save()
      }
      let context = container.newBackgroundContext()
      try await context.perform {
        let everything = NSPersistentHistoryChangeRequest.fetchHistory(
          after: nil as NSPersistentHistoryToken?
        )
        let history = try context.execute(everything) as? NSPersistentHistoryResult
        let transactions = try #require(history?.result as? [NSPersistentHistoryTransaction])
        // example: NSPersistentHistoryTransaction
        for transaction in transactions where transaction.author != "import" {
          print(transaction.timestamp, transaction.changes?.count ?? 0)
          context.mergeChanges(fromContextDidSave: transaction.objectIDNotification())
        }
        // end
        let changes = transactions.flatMap { $0.changes ?? [] }
        var counts = [0, 0, 0]
        // example: NSPersistentHistoryChange
        for change in changes where change.changedObjectID.entity.name == "Post" {
          switch change.changeType {
          case .insert: counts[0] += 1
          case .update: counts[1] += change.updatedProperties?.count ?? 0
          case .delete: counts[2] += 1
          }
        }
        // end
        #expect(counts == [2, 0, 1])
      }

      let tokenURL = folder.appendingPathComponent("token")
      // example: NSPersistentHistoryToken
      let coordinator = container.persistentStoreCoordinator
      if let token = coordinator.currentPersistentHistoryToken(fromStores: nil) {
        let data = try NSKeyedArchiver.archivedData(
          withRootObject: token,
          requiringSecureCoding: true
        )
        try data.write(to: tokenURL)
      }
      let token = try NSKeyedUnarchiver.unarchivedObject(
        ofClass: NSPersistentHistoryToken.self,
        from: Data(contentsOf: tokenURL)
      )
      // end
      #expect(token == coordinator.currentPersistentHistoryToken(fromStores: nil))
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
