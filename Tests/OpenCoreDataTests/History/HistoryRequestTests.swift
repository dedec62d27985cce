import Foundation
import OpenCoreData
import Testing

@Suite("History requests")
struct HistoryRequestTests {
  @Test("History is fetched after a token, a transaction, a date, or from the beginning")
  func bounds() throws {
    let world = try HistoryRequestWorld()
    let all = try world.transactions(.fetchHistory(after: nil as NSPersistentHistoryToken?))
    #expect(all.map(\.author) == ["app", "widget", nil])
    #expect(all.map(\.contextName) == ["view", nil, "last"])
    #expect(all.map { $0.changes?.count } == [2, 1, 2])
    #expect(all.map(\.token) == world.tokens)
    #expect(try world.transactions(.fetchHistory(after: world.tokens[1])).count == 1)
    #expect(try world.transactions(.fetchHistory(after: all[0])).map(\.author) == ["widget", nil])
    #expect(try world.transactions(.fetchHistory(after: .distantPast)).count == 3)
    #expect(try world.transactions(.fetchHistory(after: .distantFuture)).isEmpty)
    #expect(try world.transactions(.fetchHistory(after: world.tokens[2])).isEmpty)
    let request = NSPersistentHistoryChangeRequest.fetchHistory(after: world.tokens[0])
    #expect(request.token == world.tokens[0])
    #expect(request.resultType == .transactionsAndChanges)
  }

  @Test("Each result type is returned: a status, identifiers, a count, transactions, changes")
  func resultTypes() throws {
    let world = try HistoryRequestWorld()
    func result(_ type: NSPersistentHistoryResultType) throws -> Any? {
      let request = NSPersistentHistoryChangeRequest.fetchHistory(after: Date.distantPast)
      request.resultType = type
      return try world.run(request)
    }
    #expect(try result(.statusOnly) as? Bool == true)
    #expect(try result(.count) as? Int == 5)
    let identifiers = try result(.objectIDs) as? [NSManagedObjectID]
    #expect(identifiers?.count == 3)
    #expect(identifiers?.prefix(2) == [world.first, world.second])
    let transactions = try result(.transactionsOnly) as? [NSPersistentHistoryTransaction]
    #expect(transactions?.count == 3)
    #expect(transactions?.allSatisfy { $0.changes == nil } == true)
    let changes = try result(.changesOnly) as? [NSPersistentHistoryChange]
    #expect(changes?.map(\.changeType) == [.insert, .insert, .update, .insert, .delete])
    #expect(changes?.map(\.transaction?.author) == ["app", "app", "widget", nil, nil])
    let both = try result(.transactionsAndChanges) as? [NSPersistentHistoryTransaction]
    #expect(both?[1].changes?.first?.transaction === both?[1])
  }

  @Test("Changes have the updated properties of an update, and none for an insert")
  func changes() throws {
    let world = try HistoryRequestWorld()
    let all = try world.transactions(.fetchHistory(after: Date.distantPast))
    #expect(all[0].changes?.first?.updatedProperties == nil)
    #expect(all[1].changes?.first?.updatedProperties?.map(\.name) == ["name"])
    #expect(all[2].changes?.last?.changedObjectID == world.first)
    #expect(all[2].changes?.last?.tombstone == nil)
    #expect(all[0].storeID == all[0].changes?.first?.changedObjectID.persistentStore?.identifier)
    #expect(!all[0].bundleID.isEmpty && !all[0].processID.isEmpty)
    #expect(all[0].timestamp <= all[1].timestamp)
  }

  @Test("Transactions are fetched by author, name, time, number and token")
  func transactionPredicates() throws {
    let world = try HistoryRequestWorld()
    let author = "author"
    #expect(try world.authors(NSPredicate(format: "%K == %@", author, "app")) == ["app"])
    #expect(try world.authors(NSPredicate(format: "%K != %@", author, "app")) == ["widget", nil])
    #expect(try world.authors(NSPredicate(format: "author == nil")) == [nil])
    #expect(
      try world.authors(NSPredicate(format: "author IN %@", ["app", "widget"]))
        == ["app", "widget"]
    )
    #expect(try world.authors(NSPredicate(format: "contextName == 'last'")) == [nil])
    #expect(try world.authors(NSPredicate(format: "transactionNumber == 2")) == ["widget"])
    #expect(
      try world.authors(NSPredicate(format: "timestamp > %@", Date.distantFuture as NSDate)) == []
    )
    #expect(
      try world.authors(NSPredicate(format: "token == %@", world.tokens[1])) == ["widget"]
    )
    // The order of tokens is that of the transactions.
    for (sign, authors) in [
      (">", [nil]), (">=", ["widget", nil]), ("<", ["app"]), ("<=", ["app", "widget"]),
    ] as [(String, [String?])] {
      let format = "%K \(sign) %@"
      #expect(
        try world.authors(NSPredicate(format: format, "token", world.tokens[1])) == authors,
        "\(sign)"
      )
    }
    #expect(try world.authors(NSPredicate(format: "bundleID == 'none'")) == [])
  }

  @Test("Changes are fetched by kind, object and entity, with order and limit")
  func changePredicates() throws {
    let world = try HistoryRequestWorld()
    let deletion = NSPersistentHistoryChangeType.delete.rawValue
    #expect(
      try world.changes(NSPredicate(format: "changeType == %d", deletion)).map(\.changedObjectID)
        == [world.first]
    )
    #expect(
      try world.changes(NSPredicate(format: "%K == %@", "changedObjectID", world.first))
        .map(\.changeType) == [.insert, .update, .delete]
    )
    #expect(
      try world.changes(NSPredicate(format: "changedObjectID IN %@", [world.second])).count == 1
    )
    let tag = try #require(world.warehouse.container.managedObjectModel.entitiesByName["Tag"])
    #expect(try world.changes(NSPredicate(format: "changedEntity == %@", tag)).count == 1)

    let fetch = try #require(NSPersistentHistoryChange.fetchRequest)
    fetch.sortDescriptors = [NSSortDescriptor(key: "changeID", ascending: false)]
    fetch.fetchLimit = 2
    let request = NSPersistentHistoryChangeRequest.fetchHistory(withFetch: fetch)
    request.resultType = .changesOnly
    let changes = try world.run(request) as? [NSPersistentHistoryChange]
    #expect(changes?.map(\.changeID) == [5, 4])
    request.resultType = .count
    #expect(try world.run(request) as? Int == 2)
    request.fetchRequest?.predicate = NSPredicate(format: "changeType == 1")
    request.resultType = .transactionsAndChanges
    let transactions = try world.run(request) as? [NSPersistentHistoryTransaction]
    #expect(transactions?.map(\.author) == ["widget"])
  }

  @Test("A fetch request filters a request after a token")
  func fetchAfterToken() throws {
    let world = try HistoryRequestWorld()
    let request = NSPersistentHistoryChangeRequest.fetchHistory(after: world.tokens[0])
    let fetch = try #require(NSPersistentHistoryTransaction.fetchRequest)
    fetch.predicate = NSPredicate(format: "author != 'widget'")
    request.fetchRequest = fetch
    #expect(try world.transactions(request).map(\.author) == [nil])
    let context = world.warehouse.context()
    #expect(
      NSPersistentHistoryTransaction.entityDescription(with: context)?
        .attributesByName["author"] != nil
    )
    #expect(
      NSPersistentHistoryChange.entityDescription(with: context)?
        .attributesByName["changedObjectID"] != nil
    )
  }

  @Test("A transaction's notification can be merged like that of a save")
  func objectIDNotification() throws {
    let world = try HistoryRequestWorld()
    let context = world.warehouse.context()
    let writer = world.warehouse.context()
    try context.performAndWait {
      let bin = try context.existingObject(with: world.second)
      #expect(bin.value(forKey: "name") as? String == "bin 1")
      try writer.performAndWait {
        try writer.existingObject(with: world.second).setValue("renamed", forKey: "name")
        try writer.save()
      }
      #expect(bin.value(forKey: "name") as? String == "bin 1")
      for transaction in try world.transactions(.fetchHistory(after: world.tokens[2])) {
        let note = transaction.objectIDNotification()
        #expect(note.userInfo?[NSUpdatedObjectIDsKey] as? Set<NSManagedObjectID> == [world.second])
        context.mergeChanges(fromContextDidSave: note)
      }
      #expect(bin.value(forKey: "name") as? String == "renamed")
    }
  }
}
