import Foundation
import OpenCoreData
import Testing

final class Wall: NSManagedObject {
  private static let colorProperty = ManagedProperty<String?>("color")

  var color: String? {
    get { self[Self.colorProperty] }
    set { self[Self.colorProperty] = newValue }
  }
}

/// Its wall is not optional, as in many classes whose model says it is.
final class Painting: NSManagedObject {
  private static let wallProperty = ManagedObjectProperty<Wall>("wall")
  private static let copiedProperty = ManagedObjectProperty<Painting>("copied")

  var wall: Wall {
    get { self[Self.wallProperty] }
    set { self[Self.wallProperty] = newValue }
  }

  var copied: Painting {
    get { self[Self.copiedProperty] }
    set { self[Self.copiedProperty] = newValue }
  }

  override func awakeFromInsert() {
    super.awakeFromInsert()
    _ = try? managedObjectContext?.fetch(NSFetchRequest<Painting>(entityName: "Painting"))
  }
}

@Suite("Objects whose to-one relationships are read as not optional")
struct RequiredDestinationTests {
  private func context() -> NSManagedObjectContext {
    let color = NSAttributeDescription()
    color.name = "color"
    color.attributeType = .stringAttributeType
    let wall = NSEntityDescription()
    wall.name = "Wall"
    wall.managedObjectClassName = NSStringFromClass(Wall.self)
    wall.properties = [color]
    let painting = NSEntityDescription()
    painting.name = "Painting"
    painting.managedObjectClassName = NSStringFromClass(Painting.self)
    painting.properties = [("wall", wall), ("copied", painting)].map { name, destination in
      let relationship = NSRelationshipDescription()
      relationship.name = name
      relationship.destinationEntity = destination
      relationship.maxCount = 1
      return relationship
    }
    let model = NSManagedObjectModel()
    model.entities = [wall, painting]
    let container = NSPersistentContainer(name: "Paintings", managedObjectModel: model)
    container.persistentStoreDescriptions = [
      NSPersistentStoreDescription(url: URL(fileURLWithPath: "/dev/null"))
    ]
    container.loadPersistentStores { _, error in #expect(error == nil) }
    return container.newBackgroundContext()
  }

  @Test("A fetch is sorted by a key path over a to-one that the class reads as not optional")
  func sorting() throws {
    let context = context()
    try context.performAndWait {
      for color in ["red", "blue", "green"] {
        let painting = Painting(context: context)
        painting.wall = Wall(context: context)
        painting.wall.color = color
      }
      try context.save()
      let request = NSFetchRequest<Painting>(entityName: "Painting")
      request.sortDescriptors = [NSSortDescriptor(keyPath: \Painting.wall.color, ascending: true)]
      try #expect(context.fetch(request).map(\.wall.color) == ["blue", "green", "red"])
    }
    #expect(
      NSSortDescriptor(keyPath: \Painting.copied.copied.wall.color, ascending: true).key
        == "copied.copied.wall.color"
    )
  }

  @Test("An expression is made of a Swift key path")
  func expression() {
    let context = context()
    context.performAndWait {
      #expect(NSExpression(forKeyPath: \Painting.wall.color).keyPath == "wall.color")
      #expect(NSExpression(forKeyPath: \Wall.color).keyPath == "color")
    }
  }

  @Test("A fetch in awakeFromInsert posts no change of the object, which is not set up yet")
  func fetchWhileAwakening() throws {
    let context = context()
    let count = NotificationCount(of: .NSManagedObjectContextObjectsDidChange, from: context)
    context.performAndWait {
      _ = Painting(context: context)
      #expect(count.value == 0)
      context.processPendingChanges()
      #expect(count.value == 1)
      _ = try? context.fetch(NSFetchRequest<Painting>(entityName: "Painting"))
      #expect(count.value == 1)
    }
  }
}

/// Counts the notifications of a name.
private final class NotificationCount: @unchecked Sendable {
  // Unchecked: notifications are posted in the context's block, in which the count is read.
  private(set) var value = 0
  private var observer: (any NSObjectProtocol)?

  init(of name: Notification.Name, from object: NSManagedObjectContext) {
    observer = NotificationCenter.default.addObserver(
      forName: name,
      object: object,
      queue: nil
    ) { [weak self] _ in
      self?.value += 1
    }
  }

  deinit {
    if let observer { NotificationCenter.default.removeObserver(observer) }
  }
}
