import Foundation
import OpenCoreData
import Testing

/// A revoked deletion takes back the effects of its delete rules, however it came into the context.
@Suite("The effects of the delete rules of a revoked deletion")
struct RevokedDeletionEffectsTests {
  private static let rules = [NSDeleteRule.cascadeDeleteRule, .nullifyDeleteRule]

  /// A child context, or the child of one, whose saves reach the first context.
  private func contexts(
    _ depth: Int,
    below root: NSManagedObjectContext
  )
    -> [NSManagedObjectContext]
  {
    var contexts: [NSManagedObjectContext] = []
    for _ in 0..<depth { contexts.insert((contexts.first ?? root).child(), at: 0) }
    return contexts
  }

  private func folder(
    _ name: String,
    _ context: NSManagedObjectContext
  ) throws -> NSManagedObject {
    try #require(
      try context.all("Folder").first { $0.value(forKey: "name") as? String == name }
    )
  }

  // MARK: Child contexts

  @Test("A child's deletion of an owner is taken back with its effects", arguments: rules, [1, 2])
  func children(rule: NSDeleteRule, depth: Int) throws {
    let stack = try FolderStack(rule: rule)
    try stack.fill("a", "b")
    let first = stack.first
    first.mergePolicy = NSMergePolicy.mergeByPropertyStoreTrump
    try first.performAndWait { _ = try folder("old", first).value(forKey: "name") }
    try stack.rename("old", to: "renamed")
    let contexts = contexts(depth, below: first)
    let leaf = contexts[0]
    try leaf.performAndWait {
      leaf.delete(try #require(try leaf.all("Folder").first))
    }
    for context in contexts { try context.performAndWait { try context.save() } }
    try first.performAndWait { try first.save() }
    try #expect(stack.posts() == ["a in renamed", "b in renamed"])
    try first.performAndWait {
      let covers = try first.all("Cover")
      #expect(covers.count == 1)
      #expect(!first.hasChanges)
    }
  }

  @Test(
    "An object that a child edited and its cascade deleted comes back with the edit",
    arguments: [1, 2]
  )
  func editInChild(depth: Int) throws {
    let stack = try FolderStack()
    try stack.fill("a", "b")
    let first = stack.first
    first.mergePolicy = NSMergePolicy.mergeByPropertyStoreTrump
    try first.performAndWait { _ = try folder("old", first).value(forKey: "name") }
    try stack.rename("old", to: "renamed")
    let contexts = contexts(depth, below: first)
    let leaf = contexts[0]
    try leaf.performAndWait {
      try leaf.all("Post", by: "title").first?.setValue("edited", forKey: "title")
      leaf.processPendingChanges()
      leaf.delete(try #require(try leaf.all("Folder").first))
    }
    for context in contexts { try context.performAndWait { try context.save() } }
    try first.performAndWait {
      try first.save()
      #expect(!first.hasChanges)
    }
    try #expect(stack.posts() == ["b in renamed", "edited in renamed"])
  }

  @Test("An object that a child moved into a cascade is restored as a member of the owner")
  func moveIntoCascadeInChild() throws {
    let stack = try movable(.cascadeDeleteRule)
    let first = stack.first
    let child = first.child()
    try first.performAndWait { _ = try folder("new", first).value(forKey: "name") }
    try stack.rename("new", to: "renamed")
    try child.performAndWait {
      let new = try folder("new", child)
      try child.all("Post").first?.setValue(new, forKey: "folder")
      child.delete(new)
      try child.save()
    }
    try first.performAndWait {
      try first.save()
      let old = try folder("old", first)
      #expect((old.value(forKey: "posts") as? Set<NSManagedObject>)?.isEmpty == true)
    }
    try #expect(stack.posts() == ["a in renamed"])
  }

  @Test("A child's edit stays when the deletion after it is undone", arguments: [true, false])
  func undoneDeletionInChild(isUndoneInParent: Bool) throws {
    let stack = try FolderStack()
    try stack.fill("a", "b")
    let first = stack.first
    let child = first.child()
    let undone = isUndoneInParent ? first : child
    let manager = UndoManager.manual()
    try child.performAndWait {
      try child.all("Post", by: "title").first?.setValue("edited", forKey: "title")
      if isUndoneInParent { try child.save() } else { child.processPendingChanges() }
    }
    undone.performAndWait {
      undone.undoManager = manager
      manager.beginUndoGrouping()
    }
    try child.performAndWait {
      child.delete(try #require(try child.all("Folder").first))
      if isUndoneInParent { try child.save() } else { child.processPendingChanges() }
    }
    undone.performAndWait {
      undone.processPendingChanges()
      manager.endUndoGrouping()
      undone.undo()
    }
    try child.performAndWait { if child.hasChanges { try child.save() } }
    try first.performAndWait { try first.save() }
    try #expect(stack.posts() == ["b in old", "edited in old"])
  }

  @Test("A child's edit of what its cascade deleted is rolled back with the deletion")
  func rollbackInParent() throws {
    let stack = try FolderStack()
    try stack.fill("a")
    let first = stack.first
    let child = first.child()
    try child.performAndWait {
      try child.all("Post").first?.setValue("edited", forKey: "title")
      child.delete(try #require(try child.all("Folder").first))
      try child.save()
    }
    try first.performAndWait {
      first.rollback()
      #expect(!first.hasChanges)
      try #expect(stack.one("Post", first).value(forKey: "title") as? String == "a")
    }
    try #expect(stack.posts() == ["a in old"])
  }

  @Test("An object that the app deleted in a child stays deleted")
  func ownDeletionInChild() throws {
    let stack = try FolderStack()
    try stack.fill("a", "b")
    let first = stack.first
    first.mergePolicy = NSMergePolicy.mergeByPropertyStoreTrump
    try first.performAndWait { _ = try folder("old", first).value(forKey: "name") }
    try stack.rename("old", to: "renamed")
    let child = first.child()
    try child.performAndWait {
      let posts = try child.all("Post", by: "title")
      child.delete(try #require(try child.all("Folder").first))
      child.processPendingChanges()
      child.delete(posts[0])
      try child.save()
    }
    try first.performAndWait { try first.save() }
    try #expect(stack.posts() == ["b in renamed"])
  }

  @Test("A member that a child moved to an owner whose deletion is revoked is its member")
  func moveInChild() throws {
    let stack = try movable()
    let first = stack.first
    let child = first.child()
    try first.performAndWait { _ = try folder("new", first).value(forKey: "name") }
    try stack.rename("new", to: "renamed")
    try child.performAndWait {
      let post = try #require(try child.all("Post").first)
      let new = try #require(
        try child.all("Folder").first { $0 != post.value(forKey: "folder") as? NSManagedObject }
      )
      post.setValue(new, forKey: "folder")
      child.delete(new)
      try child.save()
    }
    try first.performAndWait { try first.save() }
    try #expect(stack.posts() == ["a in renamed"])
  }

  // MARK: Redo

  @Test("A deletion that was redone is taken back with its effects", arguments: rules)
  func redo(rule: NSDeleteRule) throws {
    let stack = try FolderStack(rule: rule)
    try stack.fill("a", "b")
    let first = stack.first
    first.mergePolicy = NSMergePolicy.mergeByPropertyStoreTrump
    try first.performAndWait {
      let manager = UndoManager.manual()
      first.undoManager = manager
      let folder = try folder("old", first)
      _ = folder.value(forKey: "name")
      try stack.rename("old", to: "renamed")
      manager.beginUndoGrouping()
      first.delete(folder)
      first.processPendingChanges()
      manager.endUndoGrouping()
      first.undo()
      first.redo()
      #expect(folder.isDeleted)
      try first.save()
    }
    try #expect(stack.posts() == ["a in renamed", "b in renamed"])
  }

  // MARK: Moved members

  /// A folder "old" with a post "a", and a folder "new", where the store wins.
  private func movable(_ rule: NSDeleteRule = .nullifyDeleteRule) throws -> FolderStack {
    let stack = try FolderStack(rule: rule)
    try stack.fill("a")
    let first = stack.first
    first.mergePolicy = NSMergePolicy.mergeByPropertyStoreTrump
    // The conflicts need the folders' rows as they were before the renames.
    first.retainsRegisteredObjects = true
    try first.performAndWait {
      _ = first.insert("Folder", ["name": "new"])
      try first.save()
    }
    return stack
  }

  @Test("A member that was moved to an owner whose deletion is revoked is its member")
  func movedMember() throws {
    let stack = try movable()
    let first = stack.first
    try first.performAndWait {
      let (old, new) = try (folder("old", first), folder("new", first))
      let post = try stack.one("Post", first)
      let added = first.insert("Post", ["title": "b", "folder": new])
      post.setValue(new, forKey: "folder")
      try stack.rename("new", to: "renamed")
      first.delete(new)
      try first.save()
      #expect(post.value(forKey: "folder") as? NSManagedObject === new)
      #expect(new.value(forKey: "posts") as? Set<NSManagedObject> == [post, added])
      #expect((old.value(forKey: "posts") as? Set<NSManagedObject>)?.isEmpty == true)
      #expect(!first.hasChanges)
    }
    try #expect(stack.posts() == ["a in renamed", "b in renamed"])
  }

  @Test("A member that the app took out of an owner whose deletion is revoked stays out")
  func removedMember() throws {
    let stack = try movable()
    let first = stack.first
    try first.performAndWait {
      let old = try folder("old", first)
      let post = try stack.one("Post", first)
      post.setValue(nil, forKey: "folder")
      try stack.rename("old", to: "renamed")
      first.delete(old)
      try first.save()
      #expect(post.value(forKey: "folder") == nil)
    }
    try #expect(stack.posts() == ["a in -"])
  }

  @Test("A partner that was moved to an owner whose deletion is revoked is its partner")
  func movedPartner() throws {
    let library = try Library(model: nullifyingCards())
    let (mine, theirs) = (library.context(), library.context())
    mine.mergePolicy = NSMergePolicy.mergeByPropertyStoreTrump
    try mine.performAndWait {
      let (one, two) = (Reader(context: mine), Reader(context: mine))
      (one.name, two.name) = ("One", "Two")
      let card = Card(context: mine)
      one.card = card
      two.card = Card(context: mine)
      try mine.save()
      let former = try #require(two.card)
      two.card = card
      try theirs.performAndWait {
        let readers = try theirs.all("Reader", by: "name")
        readers.last?.setValue("Renamed", forKey: "name")
        try theirs.save()
      }
      mine.delete(two)
      try mine.save()
      #expect(two.name == "Renamed")
      #expect(two.card === card && card.reader === two)
      #expect(one.card == nil && former.reader == nil)
      #expect(!mine.hasChanges)
      mine.reset()
      for reader in try mine.all("Reader", by: "name").compactMap({ $0 as? Reader }) {
        #expect((reader.card == nil) == (reader.name == "One"))
        #expect(reader.card == nil || reader.card?.reader === reader)
      }
      let cards = try mine.all("Card").filter { $0.value(forKey: "reader") == nil }
      #expect(cards.count == 1)
    }
  }

  private func nullifyingCards() -> NSManagedObjectModel {
    let model = LibraryModel.make()
    model.entitiesByName["Reader"]?.relationshipsByName["card"]?.deleteRule = .nullifyDeleteRule
    return model
  }

  // MARK: Cycles

  @Test("Members that cascade to each other come back with their owner")
  func cycle() throws {
    let stack = try FolderStack(hasRelatedPosts: true)
    try stack.fill("a", "b", "c")
    let first = stack.first
    first.mergePolicy = NSMergePolicy.mergeByPropertyStoreTrump
    try first.performAndWait {
      let posts = try first.all("Post", by: "title")
      posts[0].setValue(Set([posts[1]]), forKey: "related")
      try first.save()
      let folder = try folder("old", first)
      _ = folder.value(forKey: "name")
      try stack.rename("old", to: "renamed")
      first.delete(posts[2])
      first.delete(folder)
      try first.save()
      #expect(posts[1].value(forKey: "related") as? Set<NSManagedObject> == [posts[0]])
    }
    try #expect(stack.posts() == ["a in renamed", "b in renamed"])
  }

  @Test("A family that another deletion cascades to stays deleted")
  func cycleOfAnotherOwner() throws {
    let stack = try FolderStack(hasRelatedPosts: true)
    try stack.fill("a", "b", "c")
    let first = stack.first
    first.mergePolicy = NSMergePolicy.mergeByPropertyStoreTrump
    try first.performAndWait {
      let posts = try first.all("Post", by: "title")
      posts[0].setValue(Set([posts[1]]), forKey: "related")
      let other = first.insert("Post", ["title": "d"])
      posts[1].mutableSetValue(forKey: "related").add(other)
      try first.save()
      let folder = try folder("old", first)
      _ = folder.value(forKey: "name")
      try stack.rename("old", to: "renamed")
      first.delete(other)
      first.delete(folder)
      try first.save()
    }
    try #expect(stack.posts() == ["c in renamed"])
  }

  // MARK: Announcing

  private final class Delegate: NSObject, NSFetchedResultsControllerDelegate {}

  @Test("Fetched results show again what a revoked deletion had taken from them")
  func fetchedResults() throws {
    let stack = try FolderStack()
    try stack.fill("a", "b")
    let first = stack.first
    first.mergePolicy = NSMergePolicy.mergeByPropertyStoreTrump
    try first.performAndWait {
      let delegate = Delegate()
      let controllers = try [("Folder", "name"), ("Post", "title")].map { entity, key in
        let request = NSFetchRequest<NSManagedObject>(entityName: entity)
        request.sortDescriptors = [NSSortDescriptor(key: key, ascending: true)]
        let controller = NSFetchedResultsController(
          fetchRequest: request,
          managedObjectContext: first,
          sectionNameKeyPath: nil,
          cacheName: nil
        )
        controller.delegate = delegate
        try controller.performFetch()
        return controller
      }
      let folder = try #require(controllers[0].fetchedObjects?.first)
      _ = folder.value(forKey: "name")
      try stack.rename("old", to: "renamed")
      first.delete(folder)
      first.processPendingChanges()
      #expect(controllers.map { $0.fetchedObjects?.count } == [0, 0])
      let notes = NoteCollector(first)
      try first.save()
      first.processPendingChanges()
      #expect(controllers.map { $0.fetchedObjects?.count } == [1, 2])
      #expect(notes.objects("DidSave", NSRefreshedObjectsKey)?.contains(folder) == true)
    }
  }

  @Test("A child that merges its parent's changes shows a revoked deletion again")
  func mergingChild() throws {
    let stack = try FolderStack()
    try stack.fill("a")
    let first = stack.first
    first.mergePolicy = NSMergePolicy.mergeByPropertyStoreTrump
    let child = first.child()
    child.automaticallyMergesChangesFromParent = true
    try first.performAndWait { _ = try folder("old", first).value(forKey: "name") }
    try stack.rename("old", to: "renamed")
    let notes = NoteCollector(child)
    try child.performAndWait {
      child.delete(try #require(try child.all("Folder").first))
      try child.save()
    }
    try first.performAndWait { try first.save() }
    for _ in 0..<2 { child.performAndWait {} }
    try child.performAndWait {
      #expect(notes.objects("ObjectsDidChange", NSInsertedObjectsKey)?.isEmpty == false)
      let posts = try child.all("Post")
      #expect(posts.count == 1)
    }
  }

  // MARK: Members whose rows are older here

  @Test("A deletion fails by the name of a required owner where a member is known as another's")
  func staleMember() throws {
    let stack = try FolderStack(rule: .nullifyDeleteRule, isFolderRequired: true)
    try stack.fill("a")
    let (first, second) = (stack.first, stack.second)
    first.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
    try first.performAndWait {
      let new = first.insert("Folder", ["name": "new"])
      try first.save()
      let post = try stack.one("Post", first)
      #expect(post.value(forKey: "title") as? String == "a")
      #expect((new.value(forKey: "posts") as? Set<NSManagedObject>)?.isEmpty == true)
      try second.performAndWait {
        try stack.one("Post", second).setValue(try folder("new", second), forKey: "folder")
        try second.save()
      }
      first.delete(new)
      #expect(errorCode { try first.save() } == NSValidationMissingMandatoryPropertyError)
      first.rollback()
    }
    try #expect(stack.posts() == ["a in new"])
  }
}
