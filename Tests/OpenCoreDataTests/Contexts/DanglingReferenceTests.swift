import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

@Suite("References to objects that were deleted")
struct DanglingReferenceTests {
  /// Pins refer to places; the relationship has no inverse.
  private final class World {
    let folder: StoreFolder
    let coordinator: NSPersistentStoreCoordinator
    let context: NSManagedObjectContext
    let url: URL

    init() throws {
      let model = NSManagedObjectModel()
      let place = ModelParts.entity("Place", [ModelParts.text("name") { $0.isOptional = true }])
      let pin = ModelParts.entity("Pin", [ModelParts.text("name") { $0.isOptional = true }])
      ModelParts.relate(pin, "place", toMany: false, place).isOptional = true
      ModelParts.relate(pin, "others", toMany: true, place).isOptional = true
      for entity in [place, pin] { entity.managedObjectClassName = "NSManagedObject" }
      model.entities = [place, pin]
      folder = try StoreFolder()
      url = folder.url.appendingPathComponent("pins.sqlite")
      coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
      try coordinator.addPersistentStore(type: .sqlite, at: url)
      context = NSManagedObjectContext(.privateQueue)
      context.persistentStoreCoordinator = coordinator
    }

    func insert(_ name: String) -> NSManagedObject {
      NSEntityDescription.insertNewObject(forEntityName: name, into: context)
    }

    func deleteElsewhere(_ object: NSManagedObject) throws {
      let other = NSManagedObjectContext(.privateQueue)
      other.persistentStoreCoordinator = coordinator
      let identifier = object.objectID
      try other.performAndWait {
        other.delete(other.object(with: identifier))
        try other.save()
      }
      NSManagedObjectContext.mergeChanges(
        fromRemoteContextSave: [NSDeletedObjectIDsKey: [identifier]],
        into: [context]
      )
    }

    func destination() throws -> SQLiteValue? {
      try SQLiteConnection(path: url.path, mode: .readOnly).scalar("SELECT ZPLACE FROM ZPIN")
    }
  }

  @Test("A save refuses a new reference to an object whose deletion was merged in the meantime")
  func merged() throws {
    let world = try World()
    try world.context.performAndWait {
      let (pin, place) = (world.insert("Pin"), world.insert("Place"))
      try world.context.save()
      pin.setValue(place, forKey: "place")
      try world.deleteElsewhere(place)
      let error = try #require(throws: CocoaError.self) { try world.context.save() }
      #expect(error.code.rawValue == NSManagedObjectValidationError)
      #expect(pin.hasChanges)
      pin.setValue(nil, forKey: "place")
      try world.context.save()
    }
    #expect(try world.destination() == .null)
  }

  @Test("A save refuses a new reference to an object that it deletes")
  func deleted() throws {
    let world = try World()
    try world.context.performAndWait {
      let (pin, place) = (world.insert("Pin"), world.insert("Place"))
      try world.context.save()
      pin.setValue(place, forKey: "place")
      world.context.delete(place)
      let error = try #require(throws: CocoaError.self) { try world.context.save() }
      #expect(error.code.rawValue == NSManagedObjectValidationError)
    }
    #expect(try world.destination() == .null)
  }

  @Test("A save refuses a new member whose deletion was merged in the meantime")
  func member() throws {
    let world = try World()
    try world.context.performAndWait {
      let (pin, place) = (world.insert("Pin"), world.insert("Place"))
      try world.context.save()
      pin.mutableSetValue(forKey: "others").add(place)
      try world.deleteElsewhere(place)
      #expect(throws: CocoaError.self) { try world.context.save() }
      #expect(pin.hasChanges)
    }
  }
}
