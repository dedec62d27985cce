import Foundation
import OpenCoreData
import Testing

/// Delete rules of a relationship whose inverse is a to-many as well.
@Suite("Delete rules of many-to-many relationships")
struct ManyToManyRuleTests {
  enum Place: CaseIterable, Sendable { case file, memory }

  /// Where the members of a deleted playlist are when it is deleted.
  enum Members: CaseIterable, Sendable {
    /// Added by the context itself, which has not saved them.
    case unsaved
    /// Saved by the context, whose objects are registered.
    case registered
    /// Saved by another context; the deleting one has read nothing.
    case stored
    /// Added by another context after the deleting one had read that there are none.
    case addedMeanwhile
    /// As before, and then the playlist's newer row was fetched.
    case addedBeforeFetch
  }

  /// A playlist with tracks; the rule is that of `Playlist.tracks`.
  final class World {
    let folder: StoreFolder
    let coordinator: NSPersistentStoreCoordinator
    let mine: NSManagedObjectContext
    let playlist: NSManagedObjectID
    private var held: [NSManagedObject] = []

    init(_ rule: NSDeleteRule, _ place: Place) throws {
      let model = NSManagedObjectModel()
      let playlist = ModelParts.entity(
        "Playlist",
        [ModelParts.text("name") { $0.isOptional = true }]
      )
      let track = ModelParts.entity("Track", [ModelParts.text("name") { $0.isOptional = true }])
      let tracks = ModelParts.relate(
        playlist,
        "tracks",
        toMany: true,
        rule: rule,
        track,
        "playlists",
        toMany: true
      )
      tracks.isOptional = true
      tracks.inverseRelationship?.isOptional = true
      for entity in [playlist, track] { entity.managedObjectClassName = "NSManagedObject" }
      model.entities = [playlist, track]
      folder = try StoreFolder()
      coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
      switch place {
      case .file:
        try coordinator.addPersistentStore(
          type: .sqlite,
          at: folder.url.appendingPathComponent("music.sqlite")
        )
      case .memory:
        try coordinator.addPersistentStore(type: .inMemory, at: URL(fileURLWithPath: "/dev/null"))
      }
      mine = NSManagedObjectContext(.privateQueue)
      mine.persistentStoreCoordinator = coordinator
      let setup = NSManagedObjectContext(.privateQueue)
      setup.persistentStoreCoordinator = coordinator
      self.playlist = try setup.performAndWait {
        let playlist = NSEntityDescription.insertNewObject(forEntityName: "Playlist", into: setup)
        try setup.save()
        return playlist.objectID
      }
    }

    func context() -> NSManagedObjectContext { NSManagedObjectContext(of: coordinator) }

    func addTrack(in context: NSManagedObjectContext, saves: Bool = true) throws {
      try context.performAndWait {
        let track = NSEntityDescription.insertNewObject(forEntityName: "Track", into: context)
        let playlist = try context.existingObject(with: self.playlist)
        playlist.mutableSetValue(forKey: "tracks").add(track)
        if saves { try context.save() }
        if context === mine { held = [track, playlist] }
      }
    }

    func prepare(_ members: Members) throws {
      switch members {
      case .unsaved: try addTrack(in: mine, saves: false)
      case .registered: try addTrack(in: mine)
      case .stored: try addTrack(in: context())
      case .addedMeanwhile, .addedBeforeFetch:
        mine.performAndWait {
          let known = mine.object(with: playlist)
          // A fault of which only the members were read has no known row.
          if members == .addedMeanwhile { _ = known.value(forKey: "name") }
          #expect(known.mutableSetValue(forKey: "tracks").count == 0)
          held = [known]
        }
        try addTrack(in: context())
        guard members == .addedBeforeFetch else { return }
        try mine.performAndWait {
          let request = NSFetchRequest<NSManagedObject>(entityName: "Playlist")
          let found = try mine.fetch(request)
          #expect(found.count == 1)
        }
      }
    }

    func delete(in context: NSManagedObjectContext) throws {
      try context.performAndWait {
        context.delete(try context.existingObject(with: playlist))
        try context.save()
      }
    }

    /// The stored numbers of playlists, of tracks, and of tracks in a playlist.
    func counts() throws -> [Int] {
      let reader = context()
      return try reader.performAndWait {
        func count(_ name: String, _ format: String) throws -> Int {
          let request = NSFetchRequest<NSManagedObject>(entityName: name)
          request.predicate = NSPredicate(format: format)
          return try reader.count(for: request)
        }
        return [
          try count("Playlist", "TRUEPREDICATE"), try count("Track", "TRUEPREDICATE"),
          try count("Track", "playlists.@count > 0"),
        ]
      }
    }
  }

  @Test(
    "A many-to-many deny rule refuses the deletion",
    arguments: Place.allCases,
    Members.allCases
  )
  func deny(place: Place, members: Members) throws {
    let world = try World(.denyDeleteRule, place)
    try world.prepare(members)
    world.mine.performAndWait { world.mine.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump }
    let error = #expect(throws: CocoaError.self) { try world.delete(in: world.mine) }
    #expect(error?.code.rawValue == NSValidationRelationshipDeniedDeleteError)
    #expect(try world.counts() == (members == .unsaved ? [1, 0, 0] : [1, 1, 1]))
  }

  @Test("A many-to-many cascade deletes the members", arguments: Place.allCases, Members.allCases)
  func cascade(place: Place, members: Members) throws {
    let world = try World(.cascadeDeleteRule, place)
    try world.prepare(members)
    world.mine.performAndWait { world.mine.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump }
    try world.delete(in: world.mine)
    #expect(try world.counts() == [0, 0, 0])
  }

  @Test(
    "A many-to-many nullify leaves the members",
    arguments: Place.allCases,
    Members.allCases
  )
  func nullify(place: Place, members: Members) throws {
    let world = try World(.nullifyDeleteRule, place)
    try world.prepare(members)
    world.mine.performAndWait { world.mine.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump }
    try world.delete(in: world.mine)
    #expect(try world.counts() == [0, 1, 0])
  }

  @Test(
    "A child context applies the rule",
    arguments: [NSDeleteRule.denyDeleteRule, .cascadeDeleteRule, .nullifyDeleteRule],
    Members.allCases
  )
  func child(rule: NSDeleteRule, members: Members) throws {
    let world = try World(rule, .file)
    try world.prepare(members)
    let child = NSManagedObjectContext(.privateQueue)
    child.parent = world.mine
    world.mine.performAndWait { world.mine.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump }
    func delete() throws {
      try world.delete(in: child)
      try world.mine.performAndWait { try world.mine.save() }
    }
    switch rule {
    case .denyDeleteRule:
      #expect(throws: CocoaError.self) { try delete() }
      #expect(try world.counts() == (members == .unsaved ? [1, 0, 0] : [1, 1, 1]))
    case .cascadeDeleteRule:
      try delete()
      #expect(try world.counts() == [0, 0, 0])
    default:
      try delete()
      #expect(try world.counts() == [0, 1, 0])
    }
  }
}
