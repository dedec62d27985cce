import Foundation
import OpenCoreData

/// A person who reads, in the tests' model.
final class Reader: NSManagedObject {
  private static let nameProperty = ManagedProperty<String>("name")
  private static let ageProperty = ManagedProperty<Int16>("age")
  private static let loansProperty = ManagedProperty<Set<Book>>("loans")
  private static let cardProperty = ManagedProperty<Card?>("card")

  var name: String {
    get { self[Self.nameProperty] }
    set { self[Self.nameProperty] = newValue }
  }

  var age: Int16 {
    get { self[Self.ageProperty] }
    set { self[Self.ageProperty] = newValue }
  }

  var loans: Set<Book> {
    get { self[Self.loansProperty] }
    set { self[Self.loansProperty] = newValue }
  }

  var card: Card? {
    get { self[Self.cardProperty] }
    set { self[Self.cardProperty] = newValue }
  }

  /// Hooks in the order in which they were called.
  var calls: [String] = []

  override func awakeFromInsert() { calls.append("awakeFromInsert") }
  override func awakeFromFetch() { calls.append("awakeFromFetch") }
  override func willSave() { calls.append("willSave") }
  override func didSave() { calls.append("didSave") }
  override func prepareForDeletion() { calls.append("prepareForDeletion") }
  override func willTurnIntoFault() { calls.append("willTurnIntoFault") }
}

/// A library card: one-to-one with its reader.
final class Card: NSManagedObject {
  private static let numberProperty = ManagedProperty<String?>("number")
  private static let readerProperty = ManagedProperty<Reader?>("reader")

  var number: String? {
    get { self[Self.numberProperty] }
    set { self[Self.numberProperty] = newValue }
  }

  var reader: Reader? {
    get { self[Self.readerProperty] }
    set { self[Self.readerProperty] = newValue }
  }

  override class func keyPathsForValuesAffectingValue(forKey key: String) -> Set<String> {
    key == "label" ? ["number", "reader.name"] : []
  }

  override func value(forUndefinedKey key: String) -> Any? {
    key == "label" ? label : super.value(forUndefinedKey: key)
  }
}

extension Card {
  var label: String { "\(number ?? "") \(reader?.name ?? "")" }
}

/// A book, with an attribute of every type.
class Book: NSManagedObject {
  private static let titleProperty = ManagedProperty<String?>("title")
  private static let pagesProperty = ManagedProperty<Int64>("pages")
  private static let loanedToProperty = ManagedProperty<Reader?>("loanedTo")
  private static let subjectsProperty = ManagedProperty<Set<Subject>>("subjects")

  var title: String? {
    get { self[Self.titleProperty] }
    set { self[Self.titleProperty] = newValue }
  }

  var pages: Int64 {
    get { self[Self.pagesProperty] }
    set { self[Self.pagesProperty] = newValue }
  }

  var loanedTo: Reader? {
    get { self[Self.loanedToProperty] }
    set { self[Self.loanedToProperty] = newValue }
  }

  var subjects: Set<Subject> {
    get { self[Self.subjectsProperty] }
    set { self[Self.subjectsProperty] = newValue }
  }
}

/// An audio book: a sub-entity.
final class AudioBook: Book {
  private static let minutesProperty = ManagedProperty<Int32>("minutes")

  var minutes: Int32 {
    get { self[Self.minutesProperty] }
    set { self[Self.minutesProperty] = newValue }
  }
}

/// The subjects of books: many-to-many.
final class Subject: NSManagedObject {
  private static let nameProperty = ManagedProperty<String?>("name")
  private static let booksProperty = ManagedProperty<Set<Book>>("books")

  var name: String? {
    get { self[Self.nameProperty] }
    set { self[Self.nameProperty] = newValue }
  }

  var books: Set<Book> {
    get { self[Self.booksProperty] }
    set { self[Self.booksProperty] = newValue }
  }
}

extension Book {
  class func fetchRequest() -> NSFetchRequest<Book> { NSFetchRequest<Book>(entityName: "Book") }
}

/// The tests' model: readers, cards, books, chapters, subjects, shelves.
enum LibraryModel {
  static func make() -> NSManagedObjectModel {
    let model = NSManagedObjectModel()
    let reader = entity("Reader", Reader.self)
    let card = entity("Card", Card.self)
    let book = entity("Book", Book.self)
    let audio = entity("AudioBook", AudioBook.self)
    let subject = entity("Subject", Subject.self)
    let chapter = entity("Chapter", nil)
    let shelf = entity("Shelf", nil)

    let name = attribute("name", .stringAttributeType, optional: false, default: "nobody")
    var nameLimits = AttributeLimits()
    nameLimits.minimumLength = 2
    nameLimits.maximumLength = 20
    name.limits = nameLimits
    let age = attribute("age", .integer16AttributeType, default: NSNumber(value: 18))
    var ageLimits = AttributeLimits()
    ageLimits.minimum = 0
    ageLimits.maximum = 150
    age.limits = ageLimits
    let loans = relationship("loans", to: book, many: true, rule: .nullifyDeleteRule)
    let cardOf = relationship("card", to: card, rule: .cascadeDeleteRule)
    reader.properties = [name, age, loans, cardOf]

    let cardReader = relationship("reader", to: reader)
    card.properties = [attribute("number", .stringAttributeType), cardReader]
    pair(cardOf, cardReader)

    let loanedTo = relationship("loanedTo", to: reader)
    let subjects = relationship("subjects", to: subject, many: true)
    let chapters = relationship("chapters", to: chapter, many: true, rule: .cascadeDeleteRule)
    chapters.isOrdered = true
    let shelfOf = relationship("shelf", to: shelf)
    let notes = attribute("notes", .transformableAttributeType)
    notes.valueTransformerName = "NSSecureUnarchiveFromData"
    let mood = attribute("mood", .stringAttributeType)
    mood.isTransient = true
    book.properties = [
      attribute("title", .stringAttributeType), attribute("pages", .integer64AttributeType),
      attribute("weight", .doubleAttributeType), attribute("rating", .floatAttributeType),
      attribute("price", .decimalAttributeType), attribute("isRare", .booleanAttributeType),
      attribute("printed", .dateAttributeType), attribute("cover", .binaryDataAttributeType),
      attribute("code", .UUIDAttributeType), attribute("link", .URIAttributeType),
      attribute("copies", .integer32AttributeType), notes, mood,
      loanedTo, subjects, chapters, shelfOf,
    ]
    pair(loans, loanedTo)
    audio.properties = [attribute("minutes", .integer32AttributeType)]
    book.subentities = [audio]

    let books = relationship("books", to: book, many: true)
    subject.properties = [attribute("name", .stringAttributeType), books]
    pair(subjects, books)

    let chapterBook = relationship("book", to: book)
    chapter.properties = [attribute("heading", .stringAttributeType), chapterBook]
    pair(chapters, chapterBook)

    let shelved = relationship("books", to: book, many: true, rule: .denyDeleteRule)
    shelf.properties = [attribute("label", .stringAttributeType), shelved]
    pair(shelfOf, shelved)

    model.entities = [reader, card, book, audio, subject, chapter, shelf]
    return model
  }

  private static func entity(_ name: String, _ type: NSManagedObject.Type?) -> NSEntityDescription {
    let entity = NSEntityDescription()
    entity.name = name
    if let type { entity.managedObjectClassName = NSStringFromClass(type) }
    return entity
  }

  private static func attribute(
    _ name: String,
    _ type: NSAttributeType,
    optional: Bool = true,
    default value: Any? = nil
  ) -> NSAttributeDescription {
    let attribute = NSAttributeDescription()
    attribute.name = name
    attribute.attributeType = type
    attribute.isOptional = optional
    attribute.defaultValue = value
    return attribute
  }

  private static func relationship(
    _ name: String,
    to destination: NSEntityDescription,
    many: Bool = false,
    rule: NSDeleteRule = .nullifyDeleteRule
  ) -> NSRelationshipDescription {
    let relationship = NSRelationshipDescription()
    relationship.name = name
    relationship.destinationEntity = destination
    relationship.maxCount = many ? 0 : 1
    relationship.deleteRule = rule
    return relationship
  }

  private static func pair(
    _ one: NSRelationshipDescription,
    _ other: NSRelationshipDescription
  ) {
    one.inverseRelationship = other
    other.inverseRelationship = one
  }
}

/// A library in a temporary folder, which is removed when it is released.
final class Library {
  let folder: URL
  let container: NSPersistentContainer

  init(model: NSManagedObjectModel = LibraryModel.make(), inMemory: Bool = false) throws {
    folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("library-\(UUID().uuidString)")
    container = try Self.open(folder, model, inMemory)
  }

  private static func open(
    _ folder: URL,
    _ model: NSManagedObjectModel,
    _ inMemory: Bool
  ) throws -> NSPersistentContainer {
    let container = NSPersistentContainer(name: "Library", managedObjectModel: model)
    let description = NSPersistentStoreDescription(
      url: folder.appendingPathComponent("Library.sqlite")
    )
    if inMemory { description.type = NSInMemoryStoreType }
    description.setOption(NSNumber(value: true), forKey: NSPersistentHistoryTrackingKey)
    container.persistentStoreDescriptions = [description]
    var failure: (any Error)?
    container.loadPersistentStores { _, error in failure = failure ?? error }
    if let failure { throw failure }
    return container
  }

  /// The same file in another container, as in another run of the app.
  func reopened() throws -> NSPersistentContainer {
    try Self.open(folder, LibraryModel.make(), false)
  }

  func context() -> NSManagedObjectContext { container.newBackgroundContext() }

  deinit {
    for store in container.persistentStoreCoordinator.persistentStores {
      try? container.persistentStoreCoordinator.remove(store)
    }
    try? FileManager.default.removeItem(at: folder)
  }
}
