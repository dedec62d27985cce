import Foundation
import OpenCoreData

/// An author of the fetch tests.
final class WorldAuthor: NSManagedObject {
  static let nameProperty = ManagedProperty<String?>("name")
  static let postsProperty = ManagedProperty<Set<WorldPost>>("posts")

  var name: String? {
    get { self[Self.nameProperty] }
    set { self[Self.nameProperty] = newValue }
  }

  var posts: Set<WorldPost> {
    get { self[Self.postsProperty] }
    set { self[Self.postsProperty] = newValue }
  }
}

/// A post of the fetch tests.
class WorldPost: NSManagedObject {
  private static let titleProperty = ManagedProperty<String>("title")
  private static let subtitleProperty = ManagedProperty<String?>("subtitle")
  private static let viewsProperty = ManagedProperty<Int64>("views")
  private static let scoreProperty = ManagedProperty<Double>("score")
  private static let dateProperty = ManagedProperty<Date?>("date")
  private static let isDraftProperty = ManagedProperty<Bool>("isDraft")
  private static let isPinnedProperty = ManagedProperty<Bool>("isPinned")
  private static let authorProperty = ManagedProperty<WorldAuthor?>("author")
  private static let tagsProperty = ManagedProperty<Set<WorldTag>>("tags")

  var title: String {
    get { self[Self.titleProperty] }
    set { self[Self.titleProperty] = newValue }
  }

  var subtitle: String? {
    get { self[Self.subtitleProperty] }
    set { self[Self.subtitleProperty] = newValue }
  }

  var views: Int64 {
    get { self[Self.viewsProperty] }
    set { self[Self.viewsProperty] = newValue }
  }

  var score: Double {
    get { self[Self.scoreProperty] }
    set { self[Self.scoreProperty] = newValue }
  }

  var date: Date? {
    get { self[Self.dateProperty] }
    set { self[Self.dateProperty] = newValue }
  }

  var isDraft: Bool {
    get { self[Self.isDraftProperty] }
    set { self[Self.isDraftProperty] = newValue }
  }

  var isPinned: Bool {
    get { self[Self.isPinnedProperty] }
    set { self[Self.isPinnedProperty] = newValue }
  }

  var author: WorldAuthor? {
    get { self[Self.authorProperty] }
    set { self[Self.authorProperty] = newValue }
  }

  var tags: Set<WorldTag> {
    get { self[Self.tagsProperty] }
    set { self[Self.tagsProperty] = newValue }
  }

  /// A computed property that is not in the model.
  var shout: String { title.uppercased() + "!" }
}

/// A post with a picture: an entity that inherits.
final class WorldPhotoPost: WorldPost {}

/// A tag of the fetch tests.
final class WorldTag: NSManagedObject {
  private static let nameProperty = ManagedProperty<String>("name")
  private static let rankProperty = ManagedProperty<Int32>("rank")
  private static let postsProperty = ManagedProperty<Set<WorldPost>>("posts")

  var name: String {
    get { self[Self.nameProperty] }
    set { self[Self.nameProperty] = newValue }
  }

  var rank: Int32 {
    get { self[Self.rankProperty] }
    set { self[Self.rankProperty] = newValue }
  }

  var posts: Set<WorldPost> {
    get { self[Self.postsProperty] }
    set { self[Self.postsProperty] = newValue }
  }
}

/// Authors, posts and tags in a store without a file, with a context as in an app.
enum FetchWorld {
  private typealias Parts = ModelParts

  static func model() -> NSManagedObjectModel {
    let author = Parts.entity("Author", class: WorldAuthor.self, [Parts.text("name")])
    let post = Parts.entity(
      "Post",
      class: WorldPost.self,
      [
        Parts.text("title"), Parts.text("subtitle"), Parts.number("views"),
        Parts.attribute("score", .doubleAttributeType),
        Parts.attribute("price", .decimalAttributeType),
        Parts.attribute("date", .dateAttributeType),
        Parts.attribute("isDraft", .booleanAttributeType),
        Parts.attribute("isPinned", .booleanAttributeType),
      ]
    )
    let width = Parts.attribute("width", .integer32AttributeType)
    let photo = Parts.entity("PhotoPost", class: WorldPhotoPost.self, parent: post, [width])
    let rank = Parts.attribute("rank", .integer32AttributeType)
    let tag = Parts.entity("Tag", class: WorldTag.self, [Parts.text("name"), rank])
    Parts.relate(author, "posts", toMany: true, post, "author")
    Parts.relate(post, "tags", toMany: true, tag, "posts", toMany: true)
    let model = NSManagedObjectModel()
    model.entities = [author, post, photo, tag]
    return model
  }

  static func container(type: String = NSSQLiteStoreType) throws -> NSPersistentContainer {
    let container = NSPersistentContainer(name: "World", managedObjectModel: model())
    let description = NSPersistentStoreDescription()
    description.type = type
    description.url = URL(fileURLWithPath: "/dev/null")
    container.persistentStoreDescriptions = [description]
    var failure: (any Error)?
    container.loadPersistentStores { _, error in failure = error }
    if let failure { throw failure }
    return container
  }

  /// Posts "post 00", "post 01" … by two authors in turn, with the tags "even" and "third".
  static func container(
    posts count: Int,
    type: String = NSSQLiteStoreType
  ) throws -> NSPersistentContainer {
    let container = try container(type: type)
    let context = container.newBackgroundContext()
    try context.performAndWait {
      let authors = ["Ada", "Bob"].map { name in
        let author = WorldAuthor(context: context)
        author.name = name
        return author
      }
      let tags = ["even", "third"].enumerated().map { index, name in
        let tag = WorldTag(context: context)
        tag.name = name
        tag.rank = Int32(index + 1)
        return tag
      }
      for number in 0..<count {
        let post = WorldPost(context: context)
        post.title = number < 10 ? "post 0\(number)" : "post \(number)"
        post.views = Int64(number)
        post.score = Double(number % 4) / 2
        post.date = Date(timeIntervalSinceReferenceDate: Double(number))
        post.isDraft = number % 5 == 0
        post.author = authors[number % 2]
        if number % 2 == 0 { post.tags.insert(tags[0]) }
        if number % 3 == 0 { post.tags.insert(tags[1]) }
      }
      try context.save()
    }
    return container
  }

  static func request() -> NSFetchRequest<WorldPost> {
    let request = NSFetchRequest<WorldPost>(entityName: "Post")
    request.sortDescriptors = [NSSortDescriptor(key: "title", ascending: true)]
    return request
  }
}
