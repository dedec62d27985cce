import CoreData
import Foundation
import ManagedMacros
import Testing

final class Tag: NSManagedObject {}

// example: ManagedObject macro
@ManagedObject
final class Book: NSManagedObject {
  @Managed var title: String?
  @Managed var tags: Set<Tag>
  @Managed var author: Author?
}
// end

// example: ManagedProperty
final class Chapter: NSManagedObject {
  private static let titleProperty = ManagedProperty<String?>("title")
  var title: String? {
    get { self[Self.titleProperty] }
    set { self[Self.titleProperty] = newValue }
  }
}
// end

// example: ManagedToMany
extension Chapter {
  private static let tagsMembers = ManagedToMany<Tag>("tags")
  func addToTags(_ tag: Tag) { self[Self.tagsMembers].add(tag) }
}
// end

// example: ManagedNamedMembers
extension Author {
  #if canImport(ObjectiveC)
  @objc
  #endif
  var initial: String { String((name ?? "?").prefix(1)) }
}
// end

final class Draft: NSManagedObject {
  enum State: Int16 {
    case open = 0
    case done = 1
  }

  // example: ManagedObjectProperty
  private static let wordsProperty = ManagedObjectProperty<[String]?>("words")
  // end
  // example: ManagedRawProperty
  private static let stateProperty = ManagedRawProperty<State>("state")
  // end

  var words: [String]? {
    get { self[Self.wordsProperty] }
    set { self[Self.wordsProperty] = newValue }
  }

  var state: State {
    get { self[Self.stateProperty] }
    set { self[Self.stateProperty] = newValue }
  }
}

@Suite("Examples: classes without the build plugin")
struct PropertyExamples {
  private func attribute(_ name: String, _ type: NSAttributeType) -> NSAttributeDescription {
    let attribute = NSAttributeDescription()
    attribute.name = name
    attribute.attributeType = type
    return attribute
  }

  @Test("A typed property reads and writes the stored value")
  func typedProperty() throws {
    let chapter = NSEntityDescription()
    chapter.name = "Chapter"
    chapter.managedObjectClassName = NSStringFromClass(Chapter.self)
    chapter.properties = [attribute("title", .stringAttributeType)]
    let draft = NSEntityDescription()
    draft.name = "Draft"
    draft.managedObjectClassName = NSStringFromClass(Draft.self)
    draft.properties = [attribute("state", .integer16AttributeType)]
    let model = NSManagedObjectModel()
    model.entities = [chapter, draft]
    let container = NSPersistentContainer(name: "Book", managedObjectModel: model)
    container.persistentStoreDescriptions = [
      NSPersistentStoreDescription(url: URL(fileURLWithPath: "/dev/null"))
    ]
    container.loadPersistentStores { _, error in #expect(error == nil) }
    let context = container.newBackgroundContext()
    context.performAndWait {
      let chapter = Chapter(context: context)
      chapter.title = "One"
      #expect(chapter.value(forKey: "title") as? String == "One")
      let draft = Draft(context: context)
      draft.state = .done
      #expect(draft.value(forKey: "state") as? Int == 1)
    }
  }
}
