import Foundation
import OpenCoreData
import Testing

@Suite("Undoing with references to objects that another context deleted")
struct UndoOfLostReferenceTests {
  /// A stack whose first context has an undo manager; the post has moved from one folder to another.
  private func moved() throws -> FolderStack {
    let stack = try FolderStack(rule: .nullifyDeleteRule)
    try stack.fill("a")
    let first = stack.first
    first.automaticallyMergesChangesFromParent = true
    try first.performAndWait {
      let folder = first.insert("Folder", ["name": "new"])
      try first.save()
      let manager = UndoManager.manual()
      first.undoManager = manager
      let post = try stack.one("Post", first)
      try step(first) { post.setValue(folder, forKey: "folder") }
    }
    return stack
  }

  /// Saves changes that are undone together.
  private func step(_ context: NSManagedObjectContext, _ body: () -> Void) throws {
    context.undoManager?.beginUndoGrouping()
    body()
    context.processPendingChanges()
    context.undoManager?.endUndoGrouping()
    try context.save()
  }

  private func delete(_ name: String, _ stack: FolderStack) throws {
    let second = stack.second
    try second.performAndWait {
      for folder in try second.all("Folder")
      where folder.value(forKey: "name") as? String == name {
        second.delete(folder)
      }
      try second.save()
    }
  }

  @Test("Undoing a move to a folder whose former folder was deleted leaves no reference")
  func move() throws {
    let stack = try moved()
    let first = stack.first
    try delete("old", stack)
    try first.performAndWait {
      first.undo()
      #expect(try stack.one("Post", first).value(forKey: "folder") == nil)
      try first.save()
    }
    try #expect(stack.posts() == ["a in -"])
  }

  @Test(
    "Undoing the deletion of a post whose folder was deleted since can be saved",
    arguments: [true, false]
  )
  func deletion(isFollowed: Bool) throws {
    let stack = try moved()
    let first = stack.first
    try first.performAndWait {
      if !isFollowed { first.reset() }
      let post = try stack.one("Post", first)
      if isFollowed { _ = post.value(forKey: "folder") }
      try step(first) { first.delete(post) }
    }
    try delete("new", stack)
    try first.performAndWait {
      first.undo()
      #expect(try stack.one("Post", first).value(forKey: "folder") == nil)
      try first.save()
    }
    try #expect(stack.posts() == ["a in -"])
  }
}
