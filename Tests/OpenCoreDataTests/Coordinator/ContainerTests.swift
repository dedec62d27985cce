import Foundation
import OpenCoreData
import Testing

@Suite("Containers and coordinators")
struct ContainerTests {
  @Test("A description that cannot be opened reports its error, and the others are loaded")
  func failingStore() throws {
    let container = NSPersistentContainer(name: "X", managedObjectModel: LibraryModel.make())
    let bad = NSPersistentStoreDescription(url: URL(fileURLWithPath: "/proc/none/x.sqlite"))
    let good = NSPersistentStoreDescription()
    good.type = NSInMemoryStoreType
    container.persistentStoreDescriptions = [bad, good]
    var errors: [Bool] = []
    container.loadPersistentStores { _, error in errors.append(error != nil) }
    #expect(errors == [true, false])
    #expect(container.persistentStoreCoordinator.persistentStores.count == 1)
  }

  @Test("An unknown store type fails with 134000, a store added twice with 134081")
  func storeErrors() throws {
    let library = try Library()
    let coordinator = library.container.persistentStoreCoordinator
    let url = library.folder.appendingPathComponent("Library.sqlite")
    let unknown = #expect(throws: CocoaError.self) {
      try coordinator.addPersistentStore(
        ofType: "Papyrus",
        configurationName: nil,
        at: url,
        options: nil
      )
    }
    #expect(unknown?.code == .persistentStoreInvalidType)
    let twice = #expect(throws: (any Error).self) {
      try coordinator.addPersistentStore(type: .sqlite, at: url)
    }
    #expect((twice as NSError?)?.code == 134_081)
  }

  @Test("With two configurations in two stores, objects are saved to the store of their entity")
  func configurations() throws {
    let model = LibraryModel.make()
    let byName = model.entitiesByName
    model.setEntities(
      ["Reader", "Card"].compactMap { byName[$0] },
      forConfigurationName: "People"
    )
    model.setEntities(
      ["Subject", "Shelf"].compactMap { byName[$0] },
      forConfigurationName: "Things"
    )
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("two-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    let container = NSPersistentContainer(name: "Two", managedObjectModel: model)
    container.persistentStoreDescriptions = ["People", "Things"].map { name in
      let description = NSPersistentStoreDescription(
        url: folder.appendingPathComponent("\(name).sqlite")
      )
      description.configuration = name
      return description
    }
    var failure: (any Error)?
    container.loadPersistentStores { _, error in failure = failure ?? error }
    #expect(failure == nil)
    let context = container.newBackgroundContext()
    try context.performAndWait {
      let reader = Reader(context: context)
      let subject = Subject(context: context)
      try context.save()
      #expect(reader.objectID.persistentStore?.configurationName == "People")
      #expect(subject.objectID.persistentStore?.configurationName == "Things")
      try #expect(context.count(for: NSFetchRequest<Reader>(entityName: "Reader")) == 1)
      try #expect(context.fetch(NSFetchRequest<Subject>(entityName: "Subject")) == [subject])
    }
  }

  @Test("A removed store is closed, and its file can be destroyed")
  func removal() throws {
    let library = try Library()
    let coordinator = library.container.persistentStoreCoordinator
    let store = try #require(coordinator.persistentStores.first)
    let url = coordinator.url(for: store)
    #expect(coordinator.persistentStore(for: url) === store)
    let metadata = try NSPersistentStoreCoordinator.metadataForPersistentStore(
      type: .sqlite,
      at: url
    )
    #expect(metadata[NSStoreUUIDKey] as? String == store.identifier)
    try coordinator.remove(store)
    #expect(coordinator.persistentStores.isEmpty)
    try coordinator.destroyPersistentStore(at: url, type: .sqlite)
    #expect(try Data(contentsOf: url).isEmpty)
    try FileManager.default.removeItem(at: url)
  }

  @Test("A description without a URL is an in-memory store")
  func descriptionWithoutPlace() throws {
    let description = NSPersistentStoreDescription()
    #expect(description.url == URL(fileURLWithPath: "/dev/null"))
    let container = NSPersistentContainer(
      name: "Items",
      managedObjectModel: ItemModel.make()
    )
    container.persistentStoreDescriptions = [description]
    container.loadPersistentStores { _, error in #expect(error == nil) }
    try container.viewContext.performAndWait {
      ItemModel.insert(code: "a", into: container.viewContext)
      try container.viewContext.save()
      #expect(try ItemModel.items(container.viewContext) == ["a 0"])
    }
  }

  @Test("Saving without any store throws")
  func noStore() throws {
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: LibraryModel.make())
    let context = NSManagedObjectContext(.privateQueue)
    context.persistentStoreCoordinator = coordinator
    context.performAndWait {
      _ = Reader(context: context)
      #expect(throws: (any Error).self) { try context.save() }
      #expect(context.hasChanges)
    }
  }

  @Test("Options of a description are stored by key")
  func descriptions() {
    let description = NSPersistentStoreDescription(url: URL(fileURLWithPath: "/tmp/x.sqlite"))
    #expect(description.type == NSSQLiteStoreType)
    #expect(description.shouldMigrateStoreAutomatically)
    description.isReadOnly = true
    description.setValue(NSString(string: "DELETE"), forPragmaNamed: "journal_mode")
    #expect(description.options[NSReadOnlyPersistentStoreOption] == NSNumber(value: true))
    #expect(description.sqlitePragmas["journal_mode"] == NSString(string: "DELETE"))
    let copy = description.copy() as? NSPersistentStoreDescription
    #expect(copy?.isReadOnly == true)
    #expect(copy?.url == description.url)
  }

  @Test("A test's container can stand in with its own contexts, coordinator, name and model")
  func overriddenMembers() throws {
    let other = try Library()
    let container = StandInContainer(name: "Y", managedObjectModel: LibraryModel.make())
    container.other = other.container
    let plain: NSPersistentContainer = container
    #expect(plain.viewContext === other.container.viewContext)
    #expect(container.plainContext !== plain.viewContext)
    #expect(plain.persistentStoreCoordinator === other.container.persistentStoreCoordinator)
    #expect(plain.managedObjectModel === other.container.managedObjectModel)
    #expect(plain.name == "Y of a test")
    let context = plain.newBackgroundContext()
    #expect(context.persistentStoreCoordinator === other.container.persistentStoreCoordinator)
  }
}

/// A container as tests write it, with members of another one.
private final class StandInContainer: NSPersistentContainer, @unchecked Sendable {
  // Unchecked: one thread uses it.
  var other: NSPersistentContainer?

  override var name: String { "\(super.name) of a test" }
  override var viewContext: NSManagedObjectContext { other?.viewContext ?? super.viewContext }
  override var managedObjectModel: NSManagedObjectModel {
    other?.managedObjectModel ?? super.managedObjectModel
  }
  override var persistentStoreCoordinator: NSPersistentStoreCoordinator {
    other?.persistentStoreCoordinator ?? super.persistentStoreCoordinator
  }
  var plainContext: NSManagedObjectContext { super.viewContext }
}
