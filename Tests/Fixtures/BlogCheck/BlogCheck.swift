import BlogModel
import Foundation
import MainActorModel
import OpenCoreData

/// An app with a model library: run in debug and in release, it prints "fine" or stops.
@main
enum BlogCheck {
  static func main() throws {
    let container = NSPersistentContainer(name: "Blog")
    container.persistentStoreDescriptions = [
      NSPersistentStoreDescription(url: URL(fileURLWithPath: "/dev/null"))
    ]
    container.loadPersistentStores { _, error in precondition(error == nil, "\(error as Any)") }
    try container.viewContext.performAndWait {
      try readAndWrite(container.viewContext)
      container.viewContext.reset()
    }
    let entity = container.managedObjectModel.entitiesByName["Comment"]
    leak(entity ?? NSEntityDescription())
    readMembersOfTheMainActor()
    print("fine")
  }

  /// Key-value coding finds members that are isolated to the main actor, here on the main thread.
  private static func readMembersOfTheMainActor() {
    let container = NSPersistentContainer(name: "Notes")
    container.persistentStoreDescriptions = [
      NSPersistentStoreDescription(url: URL(fileURLWithPath: "/dev/null"))
    ]
    container.loadPersistentStores { _, error in precondition(error == nil, "\(error as Any)") }
    let page = Page(context: container.viewContext)
    page.number = 3
    precondition(page.value(forKey: "heading") as? String == "Page 3")
    precondition(page.value(forKey: "caption") as? String == "PAGE 3")
  }

  private static func readAndWrite(_ context: NSManagedObjectContext) throws {
    let post = Post(context: context)
    post.title = "A day at the lake"
    post.addToTags(Tag(context: context))
    let comment = Comment(context: context)
    comment.text = "Lovely"
    comment.text? += "!"
    comment.likes += 1
    comment.kind = .blame
    comment.post = post
    try context.save()
    context.refreshAllObjects()
    precondition(comment.text == "Lovely!" && comment.likes == 1 && comment.kind == .blame)
    precondition(comment.post === post && post.typedComments == [comment])
    precondition(post.typedTags.count == 1 && post.tags?.count == 1)
    let request = NSFetchRequest<Comment>(entityName: "Comment")
    request.sortDescriptors = [NSSortDescriptor(key: "text", ascending: true)]
    let found = try context.fetch(request)
    precondition(found == [comment])
  }

  /// Objects that an accessor receives and returns are released.
  private static func leak(_ entity: NSEntityDescription) {
    let comment = Comment(entity: entity, insertInto: nil)
    for number in 0..<1000 {
      let other = CountedComment(entity: entity, insertInto: nil)
      comment.replyTo = other
      precondition(comment.replyTo === other)
      comment[keyPath: \.replyTo] = other
      other.addToReplies(CountedComment(entity: entity, insertInto: nil))
      other.replies = []
      comment.replyTo = nil
      comment.text = "a string that is not kept inline \(number)"
      precondition(comment.text?.hasSuffix("\(number)") == true)
    }
    precondition(CountedComment.alive == 0, "\(CountedComment.alive) objects leaked")
  }
}

/// Counts its objects.
private final class CountedComment: Comment {
  nonisolated(unsafe) static var alive = 0

  override init(entity: NSEntityDescription, insertInto context: NSManagedObjectContext?) {
    Self.alive += 1
    super.init(entity: entity, insertInto: context)
  }

  deinit { Self.alive -= 1 }
}
