import Foundation
import Testing
import WatershedSQLite

@testable import OpenCoreData

/// The checks of a store's invariants find what they are for.
@Suite("Invariants of stores")
struct StoreInvariantTests {
  private let folder: StoreFolder
  private let coordinator: NSPersistentStoreCoordinator
  private let context: NSManagedObjectContext
  private let store: SQLiteStore

  init() throws {
    folder = try StoreFolder()
    coordinator = NSPersistentStoreCoordinator(
      managedObjectModel: GraphSchema.makeModel(isUnique: false)
    )
    let added = try coordinator.addPersistentStore(
      ofType: NSSQLiteStoreType,
      configurationName: nil,
      at: folder.url.appendingPathComponent("Store.sqlite"),
      options: [NSPersistentHistoryTrackingKey: true as NSNumber]
    )
    store = try #require(added as? SQLiteStore)
    context = NSManagedObjectContext(concurrencyType: .confinementConcurrencyType)
    context.persistentStoreCoordinator = coordinator
    context.transactionAuthor = "app"
  }

  private func insert(_ kind: String, _ name: String) -> NSManagedObject {
    let object = NSEntityDescription.insertNewObject(forEntityName: kind, into: context)
    object.setValue(name, forKey: "name")
    return object
  }

  /// Saves three people, two members of a club among them, and a pet of the first; then renames the first
  /// and deletes the third.
  private func fill() throws -> [NSManagedObject] {
    let people = ["a", "b", "c"].map { insert("Person", $0) }
    insert("Club", "club").setValue(Set(people.prefix(2)), forKey: "members")
    insert("Pet", "pet").setValue(people[0], forKey: "owner")
    try context.save()
    people[0].setValue("renamed", forKey: "name")
    context.delete(people[2])
    try context.save()
    return people
  }

  private func execute(_ sql: String) throws {
    try store.withWriter { try $0.connection.execute(sql) }
  }

  @Test("A store that was written, read and written in batches breaks no invariant")
  func soundStore() throws {
    let people = try fill()
    #expect(try store.brokenInvariants() == [])
    context.reset()
    let read = try context.existingObject(with: people[0].objectID)
    #expect((read.value(forKey: "pets") as? Set<NSManagedObject>)?.count == 1)
    #expect((read.value(forKey: "clubs") as? Set<NSManagedObject>)?.count == 1)
    #expect(!store.cache.contents.members.isEmpty && !store.cache.contents.rows.isEmpty)
    #expect(try store.brokenInvariants() == [])
    let update = NSBatchUpdateRequest(entityName: "Person")
    update.propertiesToUpdate = ["rank": 3]
    try context.execute(update)
    let pets = NSFetchRequest<any NSFetchRequestResult>(entityName: "Pet")
    try context.execute(NSBatchDeleteRequest(fetchRequest: pets))
    #expect(try store.brokenInvariants() == [])
  }

  @Test("A cached row or list of members that the file has otherwise is reported")
  func staleCache() throws {
    let people = try fill()
    context.reset()
    let read = try context.existingObject(with: people[0].objectID)
    #expect((read.value(forKey: "pets") as? Set<NSManagedObject>)?.count == 1)
    // Written through the store's own connection, past the cache.
    try execute("UPDATE ZPERSON SET ZNAME = 'other' WHERE ZNAME = 'renamed'")
    #expect(try store.brokenInvariants().contains { $0.contains("is cached as 2") })
    try execute("UPDATE ZPERSON SET ZNAME = 'renamed' WHERE ZNAME = 'other'")
    #expect(try store.brokenInvariants() == [])
    try execute("UPDATE ZPET SET ZOWNER = NULL")
    #expect(try store.brokenInvariants().contains { $0.hasPrefix("the members of pets") })
    try execute("DELETE FROM ZPET; DELETE FROM ACHANGE")
    #expect(try store.brokenInvariants().contains { $0.hasSuffix("is cached, and not stored") })
  }

  @Test(
    "A rule that a statement breaks in the file is reported",
    arguments: [
      ("DELETE FROM ZPERSON WHERE ZNAME = 'b'", "objects of Person are stored"),
      ("DELETE FROM ZPERSON WHERE ZNAME = 'b'", "name a row that is not there"),
      ("UPDATE ZPET SET ZOWNER = 99", "references 'owner' of Pet lead to a row"),
      ("UPDATE ZPERSON SET ZLOCKER = 1", "references 'locker' of Person have an inverse"),
      ("UPDATE Z_PRIMARYKEY SET Z_MAX = 1 WHERE Z_NAME = 'Person'", "rows of ZPERSON have a key"),
      ("UPDATE ZPERSON SET Z_OPT = 0", "rows of ZPERSON have no entity or no version"),
      ("DELETE FROM ATRANSACTION WHERE Z_PK = 2", "changes belong to no transaction"),
      ("UPDATE ACHANGE SET ZCHANGETYPE = 7", "are no insertion, update or deletion"),
      ("UPDATE ACHANGE SET ZCOLUMNS = x'80'", "have changed properties without an update"),
      ("UPDATE ACHANGE SET ZENTITYPK = 1", "objects are changed twice in one transaction"),
      ("UPDATE ACHANGE SET Z_PK = 100 WHERE Z_PK = 1", "have a number below one"),
      ("UPDATE ACHANGE SET Z_PK = 100 WHERE Z_PK = 1", "rows of ACHANGE have a number"),
      ("UPDATE ATRANSACTION SET ZAUTHORTS = 99", "transactions have a text in ZAUTHORTS"),
      ("UPDATE Z_METADATA SET Z_UUID = 'other'", "the identifier is other"),
      ("UPDATE Z_PRIMARYKEY SET Z_SUPER = 1 WHERE Z_NAME = 'Club'", "is numbered as"),
    ]
  )
  func brokenFile(statement: String, sentence: String) throws {
    _ = try fill()
    try execute(statement)
    let broken = try store.brokenInvariants()
    #expect(broken.contains { $0.contains(sentence) }, "\(broken)")
  }
}
