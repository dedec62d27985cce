import Foundation
import OpenCoreData
import Testing

@Suite("Models created in code")
struct ModelInCodeTests {
  private typealias Parts = ModelParts

  // MARK: Creating

  /// Authors with books; a fetched property and a request template.
  private static func model() -> NSManagedObjectModel {
    let author = NSEntityDescription()
    author.name = "Author"
    let book = NSEntityDescription()
    book.name = "Book"
    let books = NSRelationshipDescription()
    books.name = "books"
    books.destinationEntity = book
    books.deleteRule = .cascadeDeleteRule
    let writer = NSRelationshipDescription()
    writer.name = "writer"
    writer.destinationEntity = author
    writer.maxCount = 1
    books.inverseRelationship = writer
    writer.inverseRelationship = books
    let same = NSFetchedPropertyDescription()
    same.name = "namesakes"
    let request = NSFetchRequest<any NSFetchRequestResult>(entityName: "Author")
    request.predicate = NSPredicate(
      format: "name == $FETCH_SOURCE.name AND SELF != $FETCH_SOURCE"
    )
    request.sortDescriptors = [NSSortDescriptor(key: "born", ascending: true)]
    same.fetchRequest = request
    let marked = NSFetchedPropertyDescription()
    marked.name = "marked"
    // Through the optional, as packages do: a new description has an empty user info.
    marked.userInfo?["limit"] = 1900
    let second = NSFetchRequest<any NSFetchRequestResult>()
    second.entity = author
    second.predicate = NSPredicate(format: "born < $FETCHED_PROPERTY.userInfo.limit")
    marked.fetchRequest = second
    author.properties = [
      Parts.text("name"), Parts.attribute("born", .integer16AttributeType), books, same, marked,
    ]
    book.properties = [
      Parts.text("title"), Parts.attribute("pages", .integer32AttributeType), writer,
    ]
    let model = NSManagedObjectModel()
    model.entities = [author, book]
    return model
  }

  private func container(
    _ model: NSManagedObjectModel,
    type: String = NSSQLiteStoreType
  ) throws -> NSPersistentContainer {
    let container = NSPersistentContainer(name: "Model", managedObjectModel: model)
    let description = NSPersistentStoreDescription(url: URL(fileURLWithPath: "/dev/null"))
    description.type = type
    container.persistentStoreDescriptions = [description]
    var failure: (any Error)?
    container.loadPersistentStores { _, error in failure = failure ?? error }
    if let failure { throw failure }
    return container
  }

  // MARK: Fetched properties

  @Test("A fetched property matches $FETCH_SOURCE, sorts, and keeps its value until refreshed")
  func fetchedProperty() throws {
    let context = try container(Self.model()).viewContext
    func author(_ name: String, _ born: Int) -> NSManagedObject {
      let made = NSEntityDescription.insertNewObject(forEntityName: "Author", into: context)
      made.setValue(name, forKey: "name")
      made.setValue(born, forKey: "born")
      return made
    }
    let first = author("Smith", 1950)
    let second = author("Smith", 1920)
    let third = author("Smith", 1890)
    _ = author("Jones", 1880)
    try context.save()
    let found = try #require(first.value(forKey: "namesakes") as? [NSManagedObject])
    #expect(found == [third, second])
    second.setValue("Miller", forKey: "name")
    try context.save()
    #expect((first.value(forKey: "namesakes") as? [NSManagedObject])?.count == 2)
    context.refresh(first, mergeChanges: true)
    #expect(first.value(forKey: "namesakes") as? [NSManagedObject] == [third])
    #expect((first.value(forKey: "marked") as? [NSManagedObject])?.count == 2)
  }

  @Test("A fetched property's request can be read, and is not part of the version hash")
  func fetchedPropertyDescription() throws {
    let model = Self.model()
    let hash = model.entityVersionHashesByName["Author"]
    let property = try #require(
      model.entitiesByName["Author"]?.propertiesByName["namesakes"] as? NSFetchedPropertyDescription
    )
    #expect(property.fetchRequest?.entityName == "Author")
    #expect(property.fetchRequest?.sortDescriptors?.count == 1)
    #expect(property.fetchRequest?.predicate != nil)
    property.fetchRequest = nil
    #expect(property.fetchRequest == nil)
    #expect(model.entityVersionHashesByName["Author"] == hash)
  }

  // MARK: Fetch request templates

  @Test("A template substitutes values for its variables")
  func templates() throws {
    let model = Self.model()
    let template = NSFetchRequest<any NSFetchRequestResult>(entityName: "Book")
    template.predicate = NSPredicate(format: "pages > $MIN AND title BEGINSWITH $PREFIX")
    template.sortDescriptors = [NSSortDescriptor(key: "pages", ascending: false)]
    template.fetchLimit = 2
    model.setFetchRequestTemplate(template, forName: "Long")
    #expect(model.fetchRequestTemplate(forName: "Long")?.predicate == template.predicate)
    #expect(model.fetchRequestTemplatesByName.keys.sorted() == ["Long"])
    #expect(model.fetchRequestTemplate(forName: "Short") == nil)
    let context = try container(model).viewContext
    for (title, pages) in [("Anna", 900), ("Abel", 300), ("Alma", 100), ("Emma", 500)] {
      let book = NSEntityDescription.insertNewObject(forEntityName: "Book", into: context)
      book.setValue(title, forKey: "title")
      book.setValue(pages, forKey: "pages")
    }
    let request = try #require(
      model.fetchRequestFromTemplate(
        withName: "Long",
        substitutionVariables: ["MIN": 200, "PREFIX": "A"]
      )
    )
    let titles = try context.fetch(request).compactMap {
      ($0 as? NSManagedObject)?.value(forKey: "title") as? String
    }
    #expect(titles == ["Anna", "Abel"])
    #expect(model.fetchRequestFromTemplate(withName: "None", substitutionVariables: [:]) == nil)
    model.fetchRequestTemplate(forName: "Long")?.fetchLimit = 1
    #expect(model.fetchRequestTemplate(forName: "Long")?.fetchLimit == 2)
  }

  // MARK: Entities and properties

  @Test("Entities have their properties, their parents and their model")
  func entities() throws {
    let person = NSEntityDescription()
    person.name = "Person"
    person.isAbstract = true
    person.properties = [Parts.text("name")]
    let student = NSEntityDescription()
    student.name = "Student"
    student.properties = [Parts.attribute("year", .integer16AttributeType)]
    person.subentities = [student]
    let model = NSManagedObjectModel()
    model.entities = [person, student]
    #expect(student.superentity === person)
    #expect(student.isKindOf(entity: person))
    #expect(!person.isKindOf(entity: student))
    #expect(Set(student.attributesByName.keys) == ["name", "year"])
    #expect(person.subentitiesByName["Student"] === student)
    #expect(student.managedObjectModel === model)
    #expect(student.managedObjectClassName == "NSManagedObject")
    #expect(student.propertiesByName["year"]?.entity === student)
    #expect(student.renamingIdentifier == "Student")
    #expect(model.entitiesByName.keys.sorted() == ["Person", "Student"])
  }

  @Test("A configuration has some of the entities; nil has all")
  func configurations() throws {
    let model = Self.model()
    let author = try #require(model.entitiesByName["Author"])
    model.setEntities([author], forConfigurationName: "People")
    #expect(model.configurations.contains("People"))
    #expect(model.entities(forConfigurationName: "People") == [author])
    #expect(model.entities(forConfigurationName: nil)?.count == 2)
    #expect(model.entities(forConfigurationName: "Nobody") == nil)
    let hash = try #require(model.entityVersionHashesByName["Author"])
    let metadata: [String: Any] = [NSStoreModelVersionHashesKey: ["Author": hash]]
    #expect(
      model.isConfiguration(withName: "People", compatibleWithStoreMetadata: metadata)
    )
    #expect(!model.isConfiguration(withName: nil, compatibleWithStoreMetadata: metadata))
  }

  @Test("Version hashes depend on stored properties and the modifier alone")
  func versionHashes() throws {
    func hash(_ change: (NSEntityDescription, NSAttributeDescription) -> Void) -> Data? {
      let model = Self.model()
      guard let author = model.entitiesByName["Author"], let name = author.attributesByName["name"]
      else { return nil }
      change(author, name)
      return model.entityVersionHashesByName["Author"]
    }
    let original = hash { _, _ in }
    #expect(original?.count == 32)
    #expect(hash { _, name in name.isOptional = false } != original)
    #expect(hash { _, name in name.attributeType = .URIAttributeType } != original)
    #expect(hash { _, name in name.versionHashModifier = "2" } != original)
    #expect(hash { author, _ in author.versionHashModifier = "2" } != original)
    #expect(hash { author, _ in author.isAbstract = true } != original)
    #expect(hash { author, _ in author.uniquenessConstraints = [["name"]] } != original)
    #expect(hash { _, name in name.defaultValue = "x" } == original)
    #expect(hash { _, name in name.userInfo = ["a": "b"] } == original)
    #expect(hash { _, name in name.renamingIdentifier = "title" } == original)
    #expect(hash { author, _ in author.managedObjectClassName = "Writer" } == original)
  }

  // MARK: Merging and copying

  @Test("Models are merged, and a store's metadata selects those it was written with")
  func merging() throws {
    let other = NSManagedObjectModel()
    let shop = NSEntityDescription()
    shop.name = "Shop"
    shop.properties = [Parts.text("city")]
    other.entities = [shop]
    let merged = try #require(NSManagedObjectModel(byMerging: [Self.model(), other, Self.model()]))
    #expect(merged.entitiesByName.keys.sorted() == ["Author", "Book", "Shop"])
    let books = merged.entitiesByName["Author"]?.relationshipsByName["books"]
    #expect(books?.destinationEntity === merged.entitiesByName["Book"])
    #expect(books?.inverseRelationship?.name == "writer")
    let metadata: [String: Any] = [
      NSStoreModelVersionHashesKey: other.entityVersionHashesByName
    ]
    let found = NSManagedObjectModel(
      byMerging: [Self.model(), other],
      forStoreMetadata: metadata
    )
    #expect(found?.entitiesByName.keys.sorted() == ["Shop"])
    #expect(NSManagedObjectModel(byMerging: [Self.model()], forStoreMetadata: metadata) == nil)
  }

  @Test("Merging models with different entities of one name stops with Core Data's message")
  func mergingConflict() async {
    let result = await #expect(
      processExitsWith: .failure,
      observing: [\.standardErrorContent]
    ) {
      func model(_ type: NSAttributeType) -> NSManagedObjectModel {
        let entity = NSEntityDescription()
        entity.name = "Thing"
        entity.properties = [ModelParts.attribute("value", type)]
        let model = NSManagedObjectModel()
        model.entities = [entity]
        return model
      }
      _ = NSManagedObjectModel(
        byMerging: [model(.stringAttributeType), model(.dateAttributeType)]
      )
    }
    #expect(said(result, "Can't merge models with two different entities named 'Thing'"))
  }

  @Test("A model in use cannot be changed; its copy can")
  func frozen() throws {
    let model = Self.model()
    _ = try container(model)
    let copy = try #require(model.copy() as? NSManagedObjectModel)
    copy.entitiesByName["Book"]?.properties.append(Parts.text("isbn"))
    #expect(copy.entitiesByName["Book"]?.attributesByName["isbn"] != nil)
    #expect(model.entitiesByName["Book"]?.attributesByName["isbn"] == nil)
    #expect(copy.entityVersionHashesByName["Book"] != model.entityVersionHashesByName["Book"])
  }

  @Test("Changing an entity or a property of a model in use stops the program with Apple's text")
  func frozenSentence() async {
    let entity = await #expect(
      processExitsWith: .failure,
      observing: [\.standardErrorContent]
    ) {
      let model = ModelInCodeTests.model()
      _ = NSPersistentStoreCoordinator(managedObjectModel: model)
      model.entities = []
    }
    #expect(said(entity, "Can't modify an immutable model."))
    let property = await #expect(
      processExitsWith: .failure,
      observing: [\.standardErrorContent]
    ) {
      let model = ModelInCodeTests.model()
      _ = NSPersistentStoreCoordinator(managedObjectModel: model)
      model.entitiesByName["Author"]?.attributesByName["name"]?.isOptional = false
    }
    #expect(said(property, "Can't modify an immutable model."))
  }

  // MARK: Invalid models

  @Test("A relationship without a destination, or with a wrong inverse, is an error that names it")
  func brokenInverses() throws {
    func failure(_ change: (NSManagedObjectModel) -> Void) -> NSError? {
      let model = Self.model()
      change(model)
      do {
        _ = try container(model)
        return nil
      } catch {
        return error as NSError
      }
    }
    #expect(failure { _ in } == nil)
    let lost = failure {
      $0.entitiesByName["Author"]?.relationshipsByName["books"]?.destinationEntity = nil
    }
    #expect(lost?.domain == NSCocoaErrorDomain)
    #expect(lost?.code == NSPersistentStoreIncompatibleSchemaError)
    #expect(lost?.localizedDescription.contains("Author.books") == true)
    let false1 = failure { model in
      let book = model.entitiesByName["Book"]
      let editor = NSRelationshipDescription()
      editor.name = "sequel"
      editor.destinationEntity = book
      editor.maxCount = 1
      editor.inverseRelationship = model.entitiesByName["Author"]?.relationshipsByName["books"]
      book?.properties.append(editor)
    }
    #expect(false1?.localizedDescription.contains("Book.sequel") == true)
    let duplicates = failure { model in
      let second = NSEntityDescription()
      second.name = "Book"
      model.entities.append(second)
    }
    #expect(duplicates?.localizedDescription.contains("'Book'") == true)
  }

  @Test("An error names an unknown entity, when inserting and when fetching")
  func unknownEntity() async throws {
    let context = try container(Self.model()).viewContext
    #expect(NSEntityDescription.entity(forEntityName: "Ghost", in: context) == nil)
    let result = await #expect(
      processExitsWith: .failure,
      observing: [\.standardErrorContent]
    ) {
      let container = NSPersistentContainer(
        name: "Model",
        managedObjectModel: ModelInCodeTests.model()
      )
      _ = NSEntityDescription.insertNewObject(forEntityName: "Ghost", into: container.viewContext)
    }
    #expect(
      said(result, "+entityForName: could not locate an entity named 'Ghost' in this model.")
    )
  }
}
