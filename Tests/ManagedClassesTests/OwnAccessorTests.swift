import BlogModel
import Foundation
import OpenCoreData
import Testing

// The Testing module has types of these names.
private typealias Comment = BlogModel.Comment
private typealias Tag = BlogModel.Tag

/// Classes that implement accessors of modeled properties themselves.
@Suite("Accessors of the app's own")
struct OwnAccessorTests {
  private let container: NSPersistentContainer
  private var context: NSManagedObjectContext { container.viewContext }

  init() {
    container = NSPersistentContainer(name: "Blog")
    container.persistentStoreDescriptions = [
      NSPersistentStoreDescription(url: URL(fileURLWithPath: "/dev/null"))
    ]
    container.loadPersistentStores { _, error in #expect(error == nil) }
  }

  private func comment(_ text: String) -> Comment {
    let comment = Comment(context: context)
    comment.text = text
    return comment
  }

  @Test("Key-value coding, predicates and sort descriptors call the getter of a transient property")
  func transient() {
    let comment = comment("abc")
    #expect(comment.primitiveValue(forKey: "heading") == nil)
    #expect(NSPredicate(format: "heading == 'A'").evaluate(with: comment))
    #expect(comment.value(forKey: "heading") as? String == "A")
    let other = self.comment("Zoe")
    let sorted = NSArray(array: [other, comment])
      .sortedArray(using: [NSSortDescriptor(key: "heading", ascending: true)])
    #expect(sorted as? [Comment] == [comment, other])
    #expect(NSArray(array: [comment]).value(forKeyPath: "heading") as? [String] == ["A"])
  }

  @Test("A class that is private to its file has accessors, and key paths of it have names")
  func privateClass() throws {
    let drafts = try Drafts()
    try drafts.add(["a", "b", "c"])
    #expect(try drafts.lines() == ["a A b b,c", "b B c a", "c C - a"])
  }

  @Test("Fetched results have sections by a transient property with a getter")
  func sections() throws {
    for text in ["bc", "ab", "bd"] { _ = comment(text) }
    try context.save()
    context.reset()
    let request = NSFetchRequest<Comment>(entityName: "Comment")
    request.sortDescriptors = [NSSortDescriptor(key: "text", ascending: true)]
    let results = NSFetchedResultsController(
      fetchRequest: request,
      managedObjectContext: context,
      sectionNameKeyPath: "heading",
      cacheName: nil
    )
    try results.performFetch()
    #expect(results.sections?.map(\.name) == ["A", "B"])
  }

  @Test("Key-value coding calls the setter of a modeled property; a getter alone has the model's")
  func setter() {
    let comment = comment("abc")
    comment.setValue("DE", forKey: "language")
    #expect(comment.language == "de")
    comment.setValuesForKeys(["language": "FR"])
    #expect(comment.primitiveValue(forKey: "language") as? String == "fr")
    comment.setValue(nil, forKey: "language")
    #expect(comment.language == nil)
    comment.setPrimitiveValue("IT", forKey: "language")
    #expect(comment.value(forKey: "language") as? String == "IT")
    comment.setValue("H", forKey: "heading")
    #expect(comment.heading == "H")
  }

  @Test("An override of a managed property is found by its name, and gives Foundation's values")
  func overrides() throws {
    let entity = try #require(container.managedObjectModel.entitiesByName["Comment"])
    let comment = DatedComment(entity: entity, insertInto: context)
    #expect(comment.value(forKey: "written") as? Date == Date(timeIntervalSinceReferenceDate: 0))
    comment.setValue(-3, forKey: "likes")
    #expect(comment.likes == 0)
    comment.setValue(Int16(4), forKey: "likes")
    #expect(comment.value(forKey: "likes") is NSNumber)
    #expect(comment.value(forKey: "likes") as? Int == 4)
    comment.setValue(2, forKey: "kind")
    #expect(comment.kind == .blame)
    #expect(comment.value(forKey: "kind") as? Int == 2)
    // As the attribute converts them.
    comment.setValue(3.7, forKey: "likes")
    #expect(comment.likes == 3)
    // No case has the value: it is kept as the model's property keeps it.
    comment.setValue(77, forKey: "kind")
    #expect(comment.primitiveValue(forKey: "kind") as? Int == 77)
  }

  @Test("The set of a to-many's primitive value changes the relationship")
  func primitiveSet() throws {
    let tag = Tag(context: context)
    let post = Post(context: context)
    try context.save()
    tag.insertPost(post)
    #expect(post.typedTags == [tag])
    try context.save()
    context.refreshAllObjects()
    #expect(tag.posts == NSSet(object: post))
    #expect(tag.primitiveValue(forKey: "posts") as? Set<Post> == [post])
  }

  @Test("A transformer is found by the name of its class")
  func transformer() throws {
    let comment = comment("abc")
    comment.labels = ["x", "y"]
    try context.save()
    let transformer = ValueTransformer(forName: NSValueTransformerName("LabelsTransformer"))
    #expect(transformer is LabelsTransformer)
    #expect(
      transformer?.transformedValue(["x", "y"]) as? Data == Data(#"["x","y"]"#.utf8)
    )
    context.refreshAllObjects()
    #expect(comment.labels == ["x", "y"])
  }
}
