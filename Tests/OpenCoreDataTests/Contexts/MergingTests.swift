import Foundation
import OpenCoreData
import Testing

@Suite("Merging between contexts")
struct MergingTests {
  /// Lets everything that is queued on the context's lane run.
  private func settle(_ context: NSManagedObjectContext) {
    context.performAndWait {}
    context.performAndWait {}
  }

  @Test("A context that merges by itself sees another's inserts, changes and deletions")
  func automatic() throws {
    let library = try Library()
    let viewer = library.context()
    viewer.automaticallyMergesChangesFromParent = true
    let notes = NoteCollector(viewer)
    let writer = library.context()
    try writer.performAndWait {
      let reader = Reader(context: writer)
      reader.name = "Ada"
      try writer.save()
    }
    settle(viewer)
    #expect(notes.objects("ObjectsDidChange", NSInsertedObjectsKey)?.count == 1)
    let reader = try viewer.performAndWait {
      try #require(try viewer.fetch(NSFetchRequest<Reader>(entityName: "Reader")).first)
    }
    viewer.performAndWait { #expect(reader.name == "Ada") }

    try writer.performAndWait {
      let reader = try #require(
        try writer.fetch(NSFetchRequest<Reader>(entityName: "Reader")).first
      )
      reader.name = "Eve"
      Book(context: writer).loanedTo = reader
      try writer.save()
    }
    settle(viewer)
    viewer.performAndWait {
      #expect(reader.name == "Eve")
      #expect(reader.loans.count == 1)
      #expect(!viewer.hasChanges)
    }

    try writer.performAndWait {
      for reader in try writer.fetch(NSFetchRequest<Reader>(entityName: "Reader")) {
        writer.delete(reader)
      }
      try writer.save()
    }
    settle(viewer)
    viewer.performAndWait {
      #expect(notes.objects("ObjectsDidChange", NSDeletedObjectsKey) == [reader])
      #expect(reader.managedObjectContext == nil)
    }
  }

  @Test("Changes that wait to be saved stay on top of what is merged")
  func pendingChangesStay() throws {
    let library = try Library()
    let mine = library.context()
    let theirs = library.context()
    try mine.performAndWait {
      let reader = Reader(context: mine)
      reader.name = "Base"
      try mine.save()
      reader.age = 50
      let token = NotificationCenter.default.addObserver(
        forName: .NSManagedObjectContextDidSave,
        object: theirs,
        queue: nil
      ) { note in mine.mergeChanges(fromContextDidSave: note) }
      defer { NotificationCenter.default.removeObserver(token) }
      try theirs.performAndWait {
        try theirs.fetch(NSFetchRequest<Reader>(entityName: "Reader")).first?.name = "Theirs"
        try theirs.save()
      }
      #expect(reader.name == "Theirs")
      #expect(reader.age == 50)
      try mine.save()
    }
    let check = library.context()
    try check.performAndWait {
      let reader = try check.fetch(NSFetchRequest<Reader>(entityName: "Reader")).first
      #expect(reader?.name == "Theirs")
      #expect(reader?.age == 50)
    }
  }

  @Test("Changes from elsewhere are merged by their identifiers or URLs")
  func remote() throws {
    let library = try Library()
    let viewer = library.context()
    let reader = try viewer.performAndWait {
      let reader = Reader(context: viewer)
      reader.name = "Ada"
      try viewer.save()
      return reader
    }
    let other = try library.reopened().newBackgroundContext()
    let url = try other.performAndWait {
      let reader = try #require(try other.fetch(NSFetchRequest<Reader>(entityName: "Reader")).first)
      reader.name = "Eve"
      try other.save()
      return reader.objectID.uriRepresentation()
    }
    NSManagedObjectContext.mergeChanges(
      fromRemoteContextSave: [NSUpdatedObjectsKey: [url]],
      into: [viewer]
    )
    viewer.performAndWait { #expect(reader.name == "Eve") }
  }

  @Test("Commits that no context made are merged too")
  func rowCommits() throws {
    let library = try Library()
    let viewer = library.context()
    viewer.automaticallyMergesChangesFromParent = true
    let reader = try viewer.performAndWait {
      let reader = Reader(context: viewer)
      reader.name = "Ada"
      try viewer.save()
      #expect(reader.loans.isEmpty)
      return reader
    }
    let store = try #require(library.container.persistentStoreCoordinator.sqliteStore())
    let reference = try #require(reader.objectID.reference)
    let layout = reader.entity.layout
    guard case .attribute(let name)? = layout.slot(named: "name") else {
      Issue.record("The layout has no name.")
      return
    }
    _ = try store.write(author: "import", contextName: nil) { transaction in
      try transaction.update(reference, set: [name: .string("Eve")])
    }
    settle(viewer)
    viewer.performAndWait { #expect(reader.name == "Eve") }
  }
}
