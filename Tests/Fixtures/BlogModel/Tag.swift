// Written as apps write it.
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

import Foundation
import OpenCoreData

// The form in which Xcode writes classes into a project.

public class Tag: NSManagedObject {
}

extension Tag {
  public class func fetchRequest() -> NSFetchRequest<Tag> {
    NSFetchRequest<Tag>(entityName: "Tag")
  }

  @NSManaged public var name: String?
  @NSManaged public var posts: NSSet?
}

// MARK: Generated accessors for posts
extension Tag {
  @NSManaged public func addToPosts(_ value: Post)
  @NSManaged public func removeFromPosts(_ value: Post)
  @NSManaged public func addToPosts(_ values: NSSet)
  @NSManaged public func removeFromPosts(_ values: NSSet)
}

// An accessor of the app's own, as Apple's guide writes it.
extension Tag {
  @NSManaged var primitivePosts: NSMutableSet

  public func insertPost(_ post: Post) {
    let added: Set<AnyHashable> = [post]
    willChangeValue(forKey: "posts", withSetMutation: .union, using: added)
    primitivePosts.add(post)
    didChangeValue(forKey: "posts", withSetMutation: .union, using: added)
  }
}

extension Tag: Identifiable {
}
