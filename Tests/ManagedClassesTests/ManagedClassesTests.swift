import BlogModel
import Foundation
import OpenCoreData
import Testing

// The Testing module has types of these names.
private typealias Comment = BlogModel.Comment
private typealias Tag = BlogModel.Tag

/// A container with the blog's model, loaded from the module's bundle.
private struct Blog {
  let container: NSPersistentContainer
  var context: NSManagedObjectContext { container.viewContext }

  init() {
    container = NSPersistentContainer(name: "Blog")
    container.persistentStoreDescriptions = [
      NSPersistentStoreDescription(url: URL(fileURLWithPath: "/dev/null"))
    ]
    container.loadPersistentStores { _, error in #expect(error == nil) }
  }
}

@Suite("Classes generated from a model")
struct GeneratedClassTests {
  private let blog = Blog()

  @Test("The model is compiled into the bundle of its module")
  func compiledModel() throws {
    let url = try #require(BlogModelBundle.bundle.url(forResource: "Blog", withExtension: "momd"))
    let model = try #require(NSManagedObjectModel(contentsOf: url))
    #expect(model.entities.count == 5)
    let version = BlogModelBundle.bundle.url(
      forResource: "Blog",
      withExtension: "mom",
      subdirectory: "Blog.momd"
    )
    #expect(version != nil)
  }

  @Test("Attributes have the types that Xcode gives them")
  func attributes() throws {
    let post = Post(context: blog.context)
    let title: String? = post.title
    let count: Int64 = post.count
    let rating: NSNumber? = post.rating
    let price: NSDecimalNumber? = post.price
    let archived: TimeInterval = post.archived
    #expect(title == "untitled")
    #expect(count == 0 && rating == nil && price?.doubleValue == 0 && archived == 0)
    post.rating = NSNumber(value: 4.5)
    post.price = NSDecimalNumber(string: "12.50")
    post.date = Date(timeIntervalSinceReferenceDate: 5)
    post.archived = 7
    post.data = Data([1])
    post.number = UUID(uuidString: "12345678-1234-1234-1234-123456789ABC")
    post.link = URL(string: "https://example.com")
    post.words = ["a", "b"]
    post.default = true
    try blog.context.save()
    blog.context.refreshAllObjects()
    #expect(post.rating?.doubleValue == 4.5)
    #expect(post.price == NSDecimalNumber(string: "12.5"))
    #expect(post.date == Date(timeIntervalSinceReferenceDate: 5))
    #expect(post.archived == 7)
    #expect(post.value(forKey: "archived") as? Date == Date(timeIntervalSinceReferenceDate: 7))
    #expect(post.data == Data([1]))
    #expect(post.number?.uuidString == "12345678-1234-1234-1234-123456789ABC")
    #expect(post.link?.host == "example.com")
    #expect(post.words == ["a", "b"])
    #expect(post.default)
  }

  @Test("fetchRequest() fetches the objects of its class")
  func fetching() throws {
    let post = Post(context: blog.context)
    post.title = "Found"
    try blog.context.save()
    let request: NSFetchRequest<Post> = Post.fetchRequest()
    request.predicate = NSPredicate(format: "title == %@", "Found")
    #expect(try blog.context.fetch(request) == [post])
    #expect(post.namesakes == [post])
  }

  @Test("To-many relationships have Xcode's methods, and a typed set")
  func toMany() {
    let post = Post(context: blog.context)
    let tags = (0..<3).map { _ in Tag(context: blog.context) }
    post.addToTags(tags[0])
    post.addToTags(NSSet(array: [tags[1], tags[2]]))
    #expect(post.tags as? Set<Tag> == Set(tags))
    #expect(post.typedTags == Set(tags))
    #expect(tags[1].posts == NSSet(object: post))
    post.removeFromTags(tags[0])
    post.removeFromTags(NSSet(object: tags[1]))
    #expect(post.typedTags == [tags[2]])
    post.typedTags = []
    #expect(tags[2].posts?.count == 0)
  }

  @Test("Ordered relationships have Xcode's methods, and a typed array")
  func ordered() {
    let post = Post(context: blog.context)
    let comments = (0..<4).map { _ in Comment(context: blog.context) }
    post.addToComments(comments[0])
    post.insertIntoComments(comments[1], at: 0)
    post.addToComments(NSOrderedSet(array: [comments[2]]))
    #expect(post.typedComments == [comments[1], comments[0], comments[2]])
    #expect(post.comments?.firstObject as? Comment == comments[1])
    post.replaceComments(at: 1, with: comments[3])
    #expect(post.typedComments == [comments[1], comments[3], comments[2]])
    post.removeFromComments(at: 0)
    post.removeFromComments(comments[2])
    #expect(post.typedComments == [comments[3]])
    #expect(comments[3].post == post)
  }

  @Test("An entity that inherits has a class that inherits")
  func inheritance() {
    let serial = Serial(context: blog.context)
    serial.title = "Inherited"
    serial.part = 2
    let post: Post = serial
    #expect(post.title == "Inherited")
    let id: ObjectIdentifier = ObjectIdentifier(serial)
    #expect(serial.id == id)
  }

  @Test("A handwritten class gets generated properties if the model says category")
  func category() {
    let author = Author(context: blog.context)
    author.name = "Ann"
    let post = Post(context: blog.context)
    post.author = author
    #expect(author.greeting == "I am Ann")
    #expect(author.typedPosts == [post])
  }
}

@Suite("Members of handwritten classes that are found by their names")
struct NamedMemberTests {
  private let blog = Blog()

  private func author(_ name: String) -> Author {
    let author = Author(context: blog.context)
    author.name = name
    return author
  }

  @Test("Key-value coding reads and sets a computed property")
  func properties() {
    let author = author("Ann")
    #expect(author.value(forKey: "initial") as? String == "A")
    author.setValue(3, forKey: "nicknameLength")
    #expect(author.nickname == "xxx")
    author.setValue(NSNumber(value: 2), forKey: "nicknameLength")
    #expect(author.value(forKey: "nicknameLength") as? Int == 2)
    let post = Post(context: blog.context)
    post.author = author
    #expect(post.value(forKeyPath: "author.initial") as? String == "A")
    #expect(NSPredicate(format: "initial == 'A'").evaluate(with: author))
    #expect(!NSPredicate(format: "author.initial == 'B'").evaluate(with: post))
  }

  @Test("Fetched results have sections by a computed property")
  func sections() throws {
    for name in ["Bob", "Ann", "Bea"] { _ = author(name) }
    try blog.context.save()
    let request = NSFetchRequest<Author>(entityName: "Author")
    request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
    let results = NSFetchedResultsController(
      fetchRequest: request,
      managedObjectContext: blog.context,
      sectionNameKeyPath: "initial",
      cacheName: nil
    )
    try results.performFetch()
    #expect(results.sections?.map(\.name) == ["A", "B"])
    #expect(results.sections?.map(\.numberOfObjects) == [1, 2])
  }

  @Test("A rule of a property refuses or replaces its value in a save")
  func rules() throws {
    let author = author("Ann")
    author.nickname = "ann@example.com"
    let error = #expect(throws: NSError.self) { try blog.context.save() }
    #expect(error?.domain == "Blog" && error?.code == 7)
    author.nickname = " annie "
    try blog.context.save()
    #expect(author.nickname == "annie")
    var value: AnyObject? = "a@b" as NSString
    #expect(throws: NSError.self) { try author.validateValue(&value, forKey: "nickname") }
  }

  @Test("The model's check comes before the rule")
  func order() {
    let author = author("Ann")
    var value: AnyObject?
    let missing = #expect(throws: NSError.self) { try author.validateValue(&value, forKey: "name") }
    #expect(missing?.code == NSValidationMissingMandatoryPropertyError)
    value = "?" as NSString
    let refused = #expect(throws: NSError.self) { try author.validateValue(&value, forKey: "name") }
    #expect(refused?.domain == "Blog" && refused?.code == 9)
  }

  @Test("A rule of a relationship is called")
  func relationship() throws {
    let author = author("Ann")
    for _ in 0..<3 { Post(context: blog.context).author = author }
    let error = #expect(throws: NSError.self) { try blog.context.save() }
    #expect(error?.domain == "Blog" && error?.code == 8)
    if let post = author.typedPosts.first { blog.context.delete(post) }
    try blog.context.save()
  }

  @Test("A rule of a relationship is called for members that did not change, too")
  func unchangedRelationship() throws {
    let author = author("Ann")
    try blog.context.save()
    let posts = (0..<3).map { _ in Post(context: blog.context) }
    for post in posts {
      // The inverse does not change: so does a program that validates nothing.
      post.setPrimitiveValue(author, forKey: "author")
    }
    try blog.context.save()
    blog.context.refreshAllObjects()
    #expect(author.typedPosts.count == 3)
    author.nickname = "annie"
    let error = #expect(throws: NSError.self) { try blog.context.save() }
    #expect(error?.domain == "Blog" && error?.code == 8)
    blog.context.delete(posts[0])
    try blog.context.save()
  }

  @Test("Observers of a computed property are notified of what it depends on")
  func dependencies() {
    #expect(Author.keyPathsForValuesAffectingValue(forKey: "initial") == ["name"])
    #expect(Author.keyPathsForValuesAffectingValue(forKey: "name") == [])
  }
}

@Suite("@NSManaged in handwritten classes")
struct ManagedMemberTests {
  private let blog = Blog()

  @Test("Properties of every kind are read and written")
  func properties() throws {
    let comment = Comment(context: blog.context)
    #expect(comment.kind == .praise)
    comment.kind = .blame
    comment.text = "Hm"
    comment.text? += "!"
    comment.likes += 2
    comment.words = ["x"]
    comment.secretText = "psst"
    comment.written = Date(timeIntervalSinceReferenceDate: 1)
    try blog.context.save()
    blog.context.refreshAllObjects()
    #expect(comment.kind == .blame)
    #expect(comment.value(forKey: "kind") as? Int == 2)
    #expect(comment.text == "Hm!")
    #expect(comment.likes == 2)
    #expect(comment.words == ["x"])
    #expect(comment.secretText == "psst")
    #expect(comment.written == Date(timeIntervalSinceReferenceDate: 1))
  }

  @Test("A primitive property bypasses the accessor")
  func primitive() throws {
    let comment = Comment(context: blog.context)
    try blog.context.save()
    comment.rawText = "raw"
    #expect(comment.text == "raw")
    #expect(!comment.hasChanges)
  }

  @Test("Relationships keep their inverses, also through the methods of Xcode's shape")
  func relationships() {
    let comment = Comment(context: blog.context)
    let replies = (0..<3).map { _ in Comment(context: blog.context) }
    comment.addToReplies(replies[0])
    comment.addToReplies(NSSet(array: [replies[1], replies[2]]))
    #expect(comment.replies == Set(replies))
    #expect(replies[1].replyTo == comment)
    comment.removeFromReplies(replies[0])
    comment.removeFromReplies(NSSet(object: replies[1]))
    #expect(comment.replies == [replies[2]])
    let tag = Tag(context: blog.context)
    let post = Post(context: blog.context)
    tag.addToPosts(post)
    #expect(post.typedTags == [tag])
    #expect(tag.posts == NSSet(object: post))
  }

  @Test("A property can be overridden")
  func overriding() throws {
    let entity = try #require(blog.container.managedObjectModel.entitiesByName["Comment"])
    let comment: Comment = DatedComment(entity: entity, insertInto: blog.context)
    #expect(comment.written == Date(timeIntervalSinceReferenceDate: 0))
    comment.written = Date(timeIntervalSinceReferenceDate: 9)
    #expect(comment.written == Date(timeIntervalSinceReferenceDate: 9))
  }

  @Test("Key paths have property names without a loaded model")
  func names() {
    #expect(KeyPathNames.name(of: \Comment.text) == "text")
    #expect(KeyPathNames.name(of: \DatedComment.likes) == "likes")
    #expect(KeyPathNames.name(of: \Post.title) == "title")
    #expect(KeyPathNames.name(of: \Serial.title) == "title")
    #expect(KeyPathNames.name(of: \Tag.posts) == "posts")
    #expect(KeyPathNames.name(of: \Author.nickname) == "nickname")
  }

  @Test("An unqualified NSExpression is OpenCoreData's, not Foundation's")
  func aliases() {
    #expect(Comment.textExpression().keyPath == "text")
  }
}
