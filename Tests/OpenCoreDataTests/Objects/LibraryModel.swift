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
  private typealias Parts = ModelParts

  static func make() -> NSManagedObjectModel {
    let name = Parts.text("name") {
      $0.isOptional = false
      $0.defaultValue = "nobody"
      $0.limits.minimumLength = 2
      $0.limits.maximumLength = 20
    }
    let age = Parts.attribute("age", .integer16AttributeType) {
      $0.defaultValue = NSNumber(value: 18)
      $0.limits.minimum = 0
      $0.limits.maximum = 150
    }
    let reader = Parts.entity("Reader", class: Reader.self, [name, age])
    let card = Parts.entity("Card", class: Card.self, [Parts.text("number")])
    let book = Parts.entity(
      "Book",
      class: Book.self,
      [
        Parts.text("title"), Parts.number("pages"),
        Parts.attribute("weight", .doubleAttributeType),
        Parts.attribute("rating", .floatAttributeType),
        Parts.attribute("price", .decimalAttributeType),
        Parts.attribute("isRare", .booleanAttributeType),
        Parts.attribute("printed", .dateAttributeType),
        Parts.attribute("cover", .binaryDataAttributeType),
        Parts.attribute("code", .UUIDAttributeType), Parts.attribute("link", .URIAttributeType),
        Parts.attribute("copies", .integer32AttributeType),
        Parts.attribute("notes", .transformableAttributeType) {
          $0.valueTransformerName = "NSSecureUnarchiveFromData"
        },
        Parts.text("mood") { $0.isTransient = true },
      ]
    )
    let minutes = Parts.attribute("minutes", .integer32AttributeType)
    let audio = Parts.entity("AudioBook", class: AudioBook.self, parent: book, [minutes])
    let subject = Parts.entity("Subject", class: Subject.self, [Parts.text("name")])
    let chapter = Parts.entity("Chapter", [Parts.text("heading")])
    let shelf = Parts.entity("Shelf", [Parts.text("label")])
    Parts.relate(reader, "loans", toMany: true, book, "loanedTo")
    Parts.relate(reader, "card", toMany: false, rule: .cascadeDeleteRule, card, "reader")
    Parts.relate(book, "subjects", toMany: true, subject, "books", toMany: true)
    Parts.relate(
      book,
      "chapters",
      toMany: true,
      ordered: true,
      rule: .cascadeDeleteRule,
      chapter,
      "book"
    )
    Parts.relate(shelf, "books", toMany: true, rule: .denyDeleteRule, book, "shelf")
    let model = NSManagedObjectModel()
    model.entities = [reader, card, book, audio, subject, chapter, shelf]
    return model
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
