import Foundation
import OpenCoreData
import Testing

/// A deletion clears references that another context has saved since, and triggers compute derived
/// attributes of rows that the save does not write.
@Suite("Rows that a save changes beside its own")
struct IndirectRowsTests {
  private let bench: MigrationBench
  private let coordinator: NSPersistentStoreCoordinator

  init() throws {
    let tag = ModelParts.entity("Tag", [ModelParts.text("name") { $0.isOptional = true }])
    let note = ModelParts.entity("Note", [ModelParts.text("title") { $0.isOptional = true }])
    ModelParts.relate(note, "tag", toMany: false, tag, "notes", toMany: true)
    tag.properties += [ModelParts.derived("total", .integer64AttributeType, "notes.@count")]
    note.managedObjectClassName = NSStringFromClass(AnnouncedNote.self)
    for entity in [tag, note] {
      for property in entity.properties { property.isOptional = true }
    }
    bench = try MigrationBench()
    coordinator = NSPersistentStoreCoordinator(
      managedObjectModel: MigrationBench.model(tag, note)
    )
    try coordinator.addPersistentStore(type: .sqlite, at: bench.url)
  }

  private func context(merges: Bool) -> NSManagedObjectContext {
    let context = NSManagedObjectContext(.privateQueue)
    context.persistentStoreCoordinator = coordinator
    context.automaticallyMergesChangesFromParent = merges
    return context
  }

  /// A tag that one context deletes, and a note that another one has given the tag.
  private func deleteTagged(
    merges: Bool,
    _ body: (NSManagedObjectContext, NSManagedObject, Notification) throws -> Void
  ) throws {
    let (first, second) = (context(merges: false), context(merges: merges))
    first.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
    let tag = try first.performAndWait {
      let tag = first.insert("Tag")
      _ = first.insert("Note", ["title": "a"])
      try first.save()
      return tag.objectID
    }
    let note = try second.performAndWait {
      let note = try #require(try second.all("Note").first)
      note.setValue(second.object(with: tag), forKey: "tag")
      try second.save()
      return note
    }
    nonisolated(unsafe) var saved: Notification?
    let token = NotificationCenter.default.addObserver(
      forName: .NSManagedObjectContextDidSave,
      object: first,
      queue: nil
    ) { saved = $0 }
    defer { NotificationCenter.default.removeObserver(token) }
    try first.performAndWait {
      first.delete(first.object(with: tag))
      try first.save()
    }
    try body(second, note, try #require(saved))
  }

  @Test("A context that merges automatically can save an object whose reference was cleared")
  func automatic() throws {
    try deleteTagged(merges: true) { context, note, _ in
      context.performAndWait {}
      try context.performAndWait {
        note.setValue("b", forKey: "title")
        try context.save()
        #expect(note.value(forKey: "tag") == nil)
      }
    }
  }

  @Test("Changes that an object of the save makes in didSave() do not hide the rows")
  func changesInDidSave() throws {
    let (first, second) = (context(merges: false), context(merges: true))
    first.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
    let (tag, notes) = try first.performAndWait {
      let tag = first.insert("Tag")
      let notes = (0..<3).map { _ in first.insert("Note", ["title": "a"]) }
      try first.save()
      return (tag.objectID, notes.map(\.objectID))
    }
    let tagged = try second.performAndWait {
      let note = second.object(with: notes[0])
      note.setValue(second.object(with: tag), forKey: "tag")
      try second.save()
      return note
    }
    try first.performAndWait {
      let saved = try #require(first.object(with: notes[1]) as? AnnouncedNote)
      saved.onDidSave = { note in
        note.onDidSave = nil
        for other in [note, first.object(with: notes[2])] { other.setValue("c", forKey: "title") }
      }
      saved.setValue("b", forKey: "title")
      first.delete(first.object(with: tag))
      try first.save()
    }
    try second.performAndWait {
      tagged.setValue("d", forKey: "title")
      try second.save()
      #expect(tagged.value(forKey: "tag") == nil)
    }
  }

  @Test("A did-save notification names the rows, so that a merge by hand suffices")
  func byHand() throws {
    try deleteTagged(merges: false) { context, note, saved in
      try context.performAndWait {
        context.mergeChanges(fromContextDidSave: saved)
        note.setValue("b", forKey: "title")
        try context.save()
        #expect(note.value(forKey: "tag") == nil)
      }
    }
  }

  @Test("The deleting context can save an object whose reference its save has cleared")
  func ownContext() throws {
    let (first, second) = (context(merges: false), context(merges: false))
    first.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
    try first.performAndWait {
      let (tag, note) = (first.insert("Tag"), first.insert("Note"))
      try first.save()
      try second.performAndWait {
        second.object(with: note.objectID).setValue(
          second.object(with: tag.objectID),
          forKey: "tag"
        )
        try second.save()
      }
      first.delete(tag)
      try first.save()
      first.mergePolicy = NSMergePolicy.error
      note.setValue("b", forKey: "title")
      try first.save()
    }
  }

  @Test("A derived attribute that triggers changed is current in a context that merges")
  func derived() throws {
    let (first, second) = (context(merges: false), context(merges: true))
    let tag = try first.performAndWait {
      let tag = first.insert("Tag")
      _ = first.insert("Note", ["tag": tag])
      _ = first.insert("Note", ["tag": tag])
      try first.save()
      return tag.objectID
    }
    let shown = try second.performAndWait {
      let shown = try #require(try second.all("Tag").first)
      #expect(shown.value(forKey: "total") as? Int == 2)
      return shown
    }
    // A batch of the row layer, so that the tag is not among the objects of the save.
    try first.performAndWait {
      first.reset()
      let note = try #require(try first.all("Note").first)
      first.delete(note)
      try first.save()
    }
    second.performAndWait {}
    second.performAndWait { #expect(shown.value(forKey: "total") as? Int == 1) }
    _ = tag
  }
}
