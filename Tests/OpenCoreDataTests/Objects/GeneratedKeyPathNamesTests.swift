import Foundation
import OpenCoreData
import Testing

/// The build plugin's output for a module with managed objects.
final class ManagedKeyPathNames: ManagedKeyPathNaming {
  static func keyPathNames(of type: NSManagedObject.Type) -> [AnyKeyPath: String] {
    var names: [AnyKeyPath: String] = [:]
    if let type = type as? any (Shelf & NSFetchRequestResult).Type {
      names.merge(shelf(type)) { first, _ in first }
    }
    return names
  }

  private static func shelf<Root: Shelf>(_: Root.Type) -> [AnyKeyPath: String] {
    [\Root.label: "label"]
  }
}

/// A class without a model: its names are only in the generated code.
class Shelf: NSManagedObject {
  private static let labelProperty = ManagedProperty<String?>("label")
  private static let wordsProperty = ManagedObjectProperty<[String]?>("words")
  private static let kindProperty = ManagedRawProperty<Kind>("kind")
  private static let neighboursMembers = ManagedToMany<Shelf>("neighbours")

  enum Kind: Int16 {
    case open, closed
  }

  var label: String? {
    get { self[Self.labelProperty] }
    set { self[Self.labelProperty] = newValue }
  }

  var words: [String]? {
    get { self[Self.wordsProperty] }
    set { self[Self.wordsProperty] = newValue }
  }

  var kind: Kind {
    get { self[Self.kindProperty] }
    set { self[Self.kindProperty] = newValue }
  }

  var neighbours: ManagedMembers<Shelf> { self[Self.neighboursMembers] }
}

/// Inherits its properties, and provides the name of one of its own itself.
final class GlassShelf: Shelf {
  private static let tintProperty = ManagedProperty<String?>("tint")

  var tint: String? {
    get { self[Self.tintProperty] }
    set { self[Self.tintProperty] = newValue }
  }

  override class var keyPathNames: [AnyKeyPath: String] { [\GlassShelf.tint: "tint"] }
}

/// A class of no model, with a relationship that is not optional.
final class Rung: NSManagedObject {
  private static let labelProperty = ManagedProperty<String?>("label")
  private static let aboveProperty = ManagedObjectProperty<Rung>("above")

  var label: String? { self[Self.labelProperty] }
  var above: Rung { self[Self.aboveProperty] }

  override class var keyPathNames: [AnyKeyPath: String] {
    [\Rung.label: "label", \Rung.above: "above"]
  }
}

/// The base class of an entity's class; no entity names it.
class Placed: NSManagedObject {
  private static let placeProperty = ManagedProperty<String?>("place")

  var place: String? {
    get { self[Self.placeProperty] }
    set { self[Self.placeProperty] = newValue }
  }

  override class var keyPathNames: [AnyKeyPath: String] { [\Placed.place: "place"] }
}

final class PlacedVase: Placed {}

@Suite("Names of key paths without a model")
struct GeneratedKeyPathNamesTests {
  @Test("A property has its name in the code generated for its module")
  func generated() {
    #expect(KeyPathNames.name(of: \Shelf.label) == "label")
  }

  @Test("An inherited property has its name in the subclass")
  func inherited() {
    #expect(KeyPathNames.name(of: \GlassShelf.label) == "label")
  }

  @Test("A class can provide its names itself")
  func declared() {
    #expect(KeyPathNames.name(of: \GlassShelf.tint) == "tint")
  }

  @Test("A key path across relationships has the names of its properties")
  func crossing() {
    #expect(KeyPathNames.name(of: \Rung.above.label) == "above.label")
    #expect(KeyPathNames.name(of: \Rung.above.above.label) == "above.above.label")
    #expect(OpenCoreData.NSExpression(forKeyPath: \Rung.above.label).keyPath == "above.label")
    #expect(KeyPathNames.name(of: \Rung.above.hasChanges) == nil)
  }

  @Test("Key-value coding has the same name for a key path")
  func keyValueCoding() {
    #expect((\Shelf.label as AnyKeyPath)._kvcKeyPathString == "label")
    #expect((\GlassShelf.tint)._kvcKeyPathString == "tint")
    #expect((\String.count as AnyKeyPath)._kvcKeyPathString == nil)
  }

  @Test("A key path to no property has no name")
  func unknown() {
    #expect(KeyPathNames.name(of: \String.count) == nil)
  }

  @Test("A fetch is sorted by a property that its class has from a base class without an entity")
  func base() throws {
    let place = NSAttributeDescription()
    place.name = "place"
    place.attributeType = .stringAttributeType
    let vase = NSEntityDescription()
    vase.name = "Vase"
    vase.managedObjectClassName = NSStringFromClass(PlacedVase.self)
    vase.properties = [place]
    let model = NSManagedObjectModel()
    model.entities = [vase]
    let container = NSPersistentContainer(name: "Vases", managedObjectModel: model)
    container.persistentStoreDescriptions = [
      NSPersistentStoreDescription(url: URL(fileURLWithPath: "/dev/null"))
    ]
    container.loadPersistentStores { _, error in #expect(error == nil) }
    let context = container.newBackgroundContext()
    try context.performAndWait {
      for place in ["hall", "attic", "yard"] { PlacedVase(context: context).place = place }
      try context.save()
      let request = NSFetchRequest<PlacedVase>(entityName: "Vase")
      request.sortDescriptors = [NSSortDescriptor(keyPath: \Placed.place, ascending: true)]
      try #expect(context.fetch(request).map(\.place) == ["attic", "hall", "yard"])
    }
    #expect(NSSortDescriptor(keyPath: \Placed.place, ascending: true).key == "place")
    #expect(NSSortDescriptor(keyPath: \Placed.place?.count, ascending: true).key == nil)
  }
}

@Suite("Accessors of properties that have no column of their own")
struct ManagedObjectPropertyTests {
  private static let model: NSManagedObjectModel = {
    let label = NSAttributeDescription()
    label.name = "label"
    label.attributeType = .stringAttributeType
    let words = NSAttributeDescription()
    words.name = "words"
    words.attributeType = .transformableAttributeType
    let kind = NSAttributeDescription()
    kind.name = "kind"
    kind.attributeType = .integer16AttributeType
    kind.defaultValue = 1
    let shelf = NSEntityDescription()
    shelf.name = "Shelf"
    shelf.managedObjectClassName = NSStringFromClass(Shelf.self)
    let neighbours = NSRelationshipDescription()
    neighbours.name = "neighbours"
    neighbours.isOrdered = true
    neighbours.destinationEntity = shelf
    neighbours.inverseRelationship = neighbours
    shelf.properties = [label, words, kind, neighbours]
    let model = NSManagedObjectModel()
    model.entities = [shelf]
    return model
  }()

  private let container: NSPersistentContainer
  private var context: NSManagedObjectContext { container.viewContext }

  init() {
    container = NSPersistentContainer(name: "Shelves", managedObjectModel: Self.model)
    container.persistentStoreDescriptions = [
      NSPersistentStoreDescription(url: URL(fileURLWithPath: "/dev/null"))
    ]
    container.loadPersistentStores { _, error in #expect(error == nil) }
  }

  @Test("A transformable attribute is read and written as its own type")
  func transformable() {
    let shelf = Shelf(context: context)
    #expect(shelf.words == nil)
    shelf.words = ["a", "b"]
    #expect(shelf.words == ["a", "b"])
    #expect(shelf.value(forKey: "words") as? [String] == ["a", "b"])
    shelf.words = nil
    #expect(shelf.value(forKey: "words") == nil)
  }

  @Test("An enumeration is read and written by its raw values")
  func enumeration() {
    let shelf = Shelf(context: context)
    #expect(shelf.kind == .closed)
    shelf.kind = .open
    #expect(shelf.value(forKey: "kind") as? Int == 0)
  }

  @Test("Single members can be added, inserted, replaced and removed in order")
  func members() {
    let shelf = Shelf(context: context)
    let others = (0..<5).map { _ in Shelf(context: context) }
    shelf.neighbours.add(others[0])
    shelf.neighbours.add(NSOrderedSet(array: [others[1], others[2]]))
    #expect(shelf.neighbours.array == [others[0], others[1], others[2]])
    #expect(others[0].neighbours.set == [shelf])
    shelf.neighbours.insert(others[3], at: 1)
    #expect(shelf.neighbours.array == [others[0], others[3], others[1], others[2]])
    shelf.neighbours.replace(at: 0, with: others[4])
    #expect(shelf.neighbours.array == [others[4], others[3], others[1], others[2]])
    shelf.neighbours.remove(at: 1)
    shelf.neighbours.remove(others[2])
    #expect(shelf.neighbours.array == [others[4], others[1]])
    shelf.neighbours.insert([others[0], others[2]], at: NSIndexSet(indexesIn: NSRange(1...2)))
    #expect(shelf.neighbours.array == [others[4], others[0], others[2], others[1]])
    shelf.neighbours.remove(at: NSIndexSet(indexesIn: NSRange(0...1)))
    #expect(shelf.neighbours.array == [others[2], others[1]])
    shelf.neighbours.remove(NSSet(array: [others[2]]))
    #expect(shelf.neighbours.array == [others[1]])
    #expect(others[2].neighbours.set.isEmpty)
  }
}
