import Foundation
import OpenCoreData
import Testing

@Suite("Conflicts")
struct ConflictTests {
  /// Two contexts have read one reader, and the other has saved "Theirs" and 30 since.
  private struct World {
    let library: Library
    let mine: NSManagedObjectContext
    let reader: Reader

    init() throws {
      library = try Library()
      let setup = library.context()
      try setup.performAndWait {
        let reader = Reader(context: setup)
        reader.name = "Base"
        reader.age = 20
        try setup.save()
      }
      mine = library.context()
      reader = try World.read(mine)
      let theirs = library.context()
      try theirs.performAndWait {
        let reader = try World.read(theirs)
        reader.name = "Theirs"
        try theirs.save()
      }
    }

    static func read(_ context: NSManagedObjectContext) throws -> Reader {
      try context.performAndWait {
        let request = NSFetchRequest<Reader>(entityName: "Reader")
        request.returnsObjectsAsFaults = false
        return try #require(try context.fetch(request).first)
      }
    }

    var stored: String {
      get throws {
        let context = library.context()
        return try context.performAndWait {
          let found = try context.fetch(NSFetchRequest<Reader>(entityName: "Reader"))
          return found.map { "\($0.name) \($0.age)" }.joined(separator: ",")
        }
      }
    }
  }

  @Test("By default a save fails with 133020 and its conflicts, and nothing is written")
  func error() throws {
    let world = try World()
    try world.mine.performAndWait {
      world.reader.name = "Mine"
      let error = try #require(throws: CocoaError.self) { try world.mine.save() }
      #expect(error.code == .managedObjectMerge)
      let conflict = try #require(error.persistentStoreSaveConflicts?.first)
      #expect(conflict.sourceObject === world.reader)
      #expect(conflict.oldVersionNumber == 1)
      #expect(conflict.newVersionNumber == 2)
      // Both contexts have one coordinator, so its cache has the newer values.
      #expect(conflict.objectSnapshot?["name"] as? String == "Base")
      #expect(conflict.cachedSnapshot?["name"] as? String == "Theirs")
      #expect(conflict.persistedSnapshot == nil)
      #expect(world.reader.isUpdated)
    }
    try #expect(world.stored == "Theirs 20")
  }

  @Test(
    "Policies resolve conflicts property by property, or for the whole object",
    arguments: [
      (NSMergePolicy.mergeByPropertyStoreTrump, "Theirs 21"),
      (NSMergePolicy.mergeByPropertyObjectTrump, "Mine 21"),
      (NSMergePolicy.overwrite, "Mine 21"),
      (NSMergePolicy.rollback, "Theirs 20"),
    ]
  )
  func policies(policy: NSMergePolicy, expected: String) throws {
    let world = try World()
    try world.mine.performAndWait {
      world.mine.mergePolicy = policy
      world.reader.name = "Mine"
      world.reader.age = 21
      try world.mine.save()
      #expect("\(world.reader.name) \(world.reader.age)" == expected)
      #expect(!world.mine.hasChanges)
    }
    try #expect(world.stored == expected)
  }

  @Test("Overwrite writes unchanged values too; object trump does not")
  func overwrite() throws {
    for (policy, expected) in [
      (NSMergePolicy.overwrite, "Base 21"), (.mergeByPropertyObjectTrump, "Theirs 21"),
    ] {
      let world = try World()
      try world.mine.performAndWait {
        world.mine.mergePolicy = policy
        world.reader.age = 21
        try world.mine.save()
      }
      try #expect(world.stored == expected)
    }
  }

  @Test(
    "A row that another context deleted stays deleted, or is written again",
    arguments: [
      (NSMergePolicy.mergeByPropertyStoreTrump, ""), (.rollback, ""),
      (.mergeByPropertyObjectTrump, "Mine 20"), (.overwrite, "Mine 20"),
    ]
  )
  func deletedRow(policy: NSMergePolicy, expected: String) throws {
    let library = try Library()
    let mine = library.context()
    try mine.performAndWait {
      let reader = Reader(context: mine)
      reader.name = "Base"
      reader.age = 20
      try mine.save()
      let theirs = library.context()
      try theirs.performAndWait {
        theirs.delete(try World.read(theirs))
        try theirs.save()
      }
      mine.mergePolicy = policy
      reader.name = "Mine"
      try mine.save()
      #expect(!mine.hasChanges)
      let check = library.context()
      try check.performAndWait {
        let found = try check.fetch(NSFetchRequest<Reader>(entityName: "Reader"))
        #expect(found.map { "\($0.name) \($0.age)" }.joined() == expected)
      }
    }
  }

  @Test("Deleting a row that another context changed is a conflict")
  func deletion() throws {
    let world = try World()
    try world.mine.performAndWait {
      world.mine.delete(world.reader)
      #expect(throws: CocoaError.self) { try world.mine.save() }
      world.mine.mergePolicy = NSMergePolicy.mergeByPropertyStoreTrump
      try world.mine.save()
      #expect(!world.reader.isDeleted)
      #expect(world.reader.name == "Theirs")
      world.mine.delete(world.reader)
      try world.mine.save()
    }
    try #expect(world.stored == "")
  }

  @Test(
    "If the store's reference wins, every owner has the members that the store has",
    arguments: [NSMergePolicy.mergeByPropertyStoreTrump, .rollback]
  )
  func inverses(policy: NSMergePolicy) throws {
    let library = try Library()
    let mine = library.context()
    try mine.performAndWait {
      let readers = ["Ada", "Eve", "Ivo"].map { name in
        let reader = Reader(context: mine)
        reader.name = name
        return reader
      }
      let book = Book(context: mine)
      book.loanedTo = readers[0]
      try mine.save()
      #expect(readers.map(\.loans.count) == [1, 0, 0])
      book.loanedTo = readers[1]
      let theirs = library.context()
      let (theirBook, theirReader) = (book.objectID, readers[2].objectID)
      try theirs.performAndWait {
        let own = try #require(theirs.object(with: theirBook) as? Book)
        own.loanedTo = theirs.object(with: theirReader) as? Reader
        try theirs.save()
      }
      mine.mergePolicy = policy
      try mine.save()
      #expect(book.loanedTo === readers[2])
      #expect(readers.map(\.loans.count) == [0, 0, 1])
      #expect(!mine.hasChanges)
    }
  }
}
