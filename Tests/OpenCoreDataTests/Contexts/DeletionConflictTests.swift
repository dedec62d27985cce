import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

@Suite("Conflicts of deletions with changes of another context")
struct DeletionConflictTests {
  @Test("An object that the app deleted stays deleted when the deletion of its owner is revoked")
  func ownDeletion() throws {
    let stack = try FolderStack()
    try stack.fill("a", "b", "c")
    let (first, second) = (stack.first, stack.second)
    first.mergePolicy = NSMergePolicy.mergeByPropertyStoreTrump
    try first.performAndWait {
      let folder = try stack.one("Folder", first)
      _ = folder.value(forKey: "name")
      try second.performAndWait {
        try stack.one("Folder", second).setValue("renamed", forKey: "name")
        try second.save()
      }
      let posts = try first.all("Post", by: "title")
      first.delete(posts[0])
      first.delete(folder)
      first.processPendingChanges()
      first.delete(posts[1])
      try first.save()
    }
    try #expect(stack.posts() == ["c in renamed"])
  }

  // MARK: Members that the context did not know

  @Test("A deletion cascades to the members that another context added", arguments: [true, false])
  func addedMembers(isFolderRequired: Bool) throws {
    let stack = try FolderStack(isFolderRequired: isFolderRequired)
    try stack.fill("a")
    let (first, second) = (stack.first, stack.second)
    first.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
    try first.performAndWait {
      let folder = try stack.one("Folder", first)
      #expect((folder.value(forKey: "posts") as? Set<NSManagedObject>)?.count == 1)
      try second.performAndWait {
        let folder = try stack.one("Folder", second)
        _ = second.insert("Post", ["title": "b", "folder": folder])
        try second.save()
      }
      first.delete(folder)
      try first.save()
    }
    try #expect(stack.posts() == [])
  }

  /// Adds a post to the folder as an import does: the folder's version stays.
  private func importPost(_ stack: FolderStack) throws {
    let store = try #require(stack.coordinator.persistentStores.first?.url)
    let connection = try SQLiteConnection(path: store.path, mode: .readWrite)
    try connection.run("UPDATE ZPOST SET ZFOLDER = 1 WHERE ZTITLE = 'b'")
  }

  @Test("A deletion cascades to members that an import added without changing the owner's version")
  func importedMembers() throws {
    let stack = try FolderStack()
    try stack.fill("a")
    let (first, second) = (stack.first, stack.second)
    try second.performAndWait {
      _ = second.insert("Post", ["title": "b"])
      try second.save()
    }
    try first.performAndWait {
      let folder = try stack.one("Folder", first)
      #expect((folder.value(forKey: "posts") as? Set<NSManagedObject>)?.count == 1)
      try importPost(stack)
      first.delete(folder)
      #expect(errorCode { try first.save() } == NSManagedObjectMergeError)
      first.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
      try first.save()
    }
    try #expect(stack.posts() == [])
  }

  @Test(
    "A deletion fails where it would leave a required owner empty that the context did not know of"
  )
  func requiredMembers() throws {
    let stack = try FolderStack(rule: .nullifyDeleteRule, isFolderRequired: true)
    try stack.fill()
    let (first, second) = (stack.first, stack.second)
    first.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
    try first.performAndWait {
      let folder = try stack.one("Folder", first)
      #expect((folder.value(forKey: "posts") as? Set<NSManagedObject>)?.count == 0)
      try second.performAndWait {
        let folder = try stack.one("Folder", second)
        _ = second.insert("Post", ["title": "b", "folder": folder])
        try second.save()
      }
      first.delete(folder)
      #expect(errorCode { try first.save() } == NSValidationMissingMandatoryPropertyError)
    }
    try #expect(stack.posts() == ["b in old"])
  }

  @Test(
    "A deny rule holds for members that the context did not know of",
    arguments: [true, false]
  )
  func deniedByUnknownMember(isImported: Bool) throws {
    let stack = try FolderStack(rule: .denyDeleteRule)
    try stack.fill()
    let (first, second) = (stack.first, stack.second)
    try second.performAndWait {
      _ = second.insert("Post", ["title": "b"])
      try second.save()
    }
    try first.performAndWait {
      let folder = try stack.one("Folder", first)
      #expect((folder.value(forKey: "posts") as? Set<NSManagedObject>)?.count == 0)
      if isImported {
        try importPost(stack)
      } else {
        try second.performAndWait {
          let post = try stack.one("Post", second)
          post.setValue(try stack.one("Folder", second), forKey: "folder")
          try second.save()
        }
      }
      first.delete(folder)
      #expect(errorCode { try first.save() } == NSManagedObjectMergeError)
      first.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
      #expect(errorCode { try first.save() } == NSValidationRelationshipDeniedDeleteError)
      first.rollback()
    }
    try #expect(stack.posts() == ["b in old"])
  }

  @Test("A row that is written again has no reference to an owner that was deleted with it")
  func ownerIsGone() throws {
    let stack = try FolderStack()
    try stack.fill("a")
    let (first, second) = (stack.first, stack.second)
    first.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
    try first.performAndWait {
      let post = try stack.one("Post", first)
      let cover = try stack.one("Cover", first)
      for object in [post, cover] { _ = object.value(forKey: "folder") }
      try second.performAndWait {
        second.delete(try stack.one("Folder", second))
        try second.save()
      }
      post.setValue("changed", forKey: "title")
      cover.setValue("blue", forKey: "color")
      try first.save()
    }
    try #expect(stack.posts() == ["changed in -"])
    try second.performAndWait {
      second.reset()
      let cover = try stack.one("Cover", second)
      #expect(cover.value(forKey: "color") as? String == "blue")
      #expect(cover.value(forKey: "folder") == nil)
      #expect(!second.hasChanges)
    }
  }

  // MARK: Rollback

  @Test("After a rollback an object whose row is gone is not found")
  func rollback() throws {
    let stack = try FolderStack()
    try stack.fill("a")
    let (first, second) = (stack.first, stack.second)
    try first.performAndWait {
      let identifier = try stack.one("Post", first).objectID
      first.reset()
      let fault = first.object(with: identifier)
      try second.performAndWait {
        second.delete(try stack.one("Post", second))
        try second.save()
      }
      #expect(fault.value(forKey: "title") == nil)
      #expect(first.hasChanges)
      first.rollback()
      #expect(!first.hasChanges)
      #expect(first.registeredObject(for: identifier) == nil)
      let code = errorCode { _ = try first.existingObject(with: identifier) }
      #expect(code == NSManagedObjectReferentialIntegrityError)
    }
  }
}
