import Effects
import Foundation
import OpenCoreData

/// An album of photos whose pictures are large values in files.
struct PhotoAlbum {
  let folder: ScratchFolder
  var url: URL { folder.file("album.sqlite") }

  /// Saves the album, one photo at a time.
  init(photos: Int, byteCount: Int) throws {
    folder = try ScratchFolder()
    let context = try open()
    try context.performAndWait {
      let album = context.insert("Album", ["name": "Summer"])
      try context.save()
      for number in 0..<photos {
        let photo = context.insert(
          "Photo",
          ["number": number, "picture": Self.picture(number, byteCount)]
        )
        photo.setValue(context.object(with: album.objectID), forKey: "album")
        try context.save()
        context.reset()
      }
    }
  }

  static func picture(_ number: Int, _ byteCount: Int) -> Data {
    Data(repeating: UInt8(truncatingIfNeeded: number + 1), count: byteCount)
  }

  private static func model() -> NSManagedObjectModel {
    let picture = ModelParts.attribute("picture", .binaryDataAttributeType) {
      $0.isOptional = true
      $0.allowsExternalBinaryDataStorage = true
    }
    let title = ModelParts.text("title") { $0.isOptional = true }
    let album = ModelParts.entity("Album", [ModelParts.text("name")])
    let photo = ModelParts.entity("Photo", [ModelParts.number("number"), title, picture])
    let photos = ModelParts.relate(album, "photos", toMany: true, photo, "album")
    photos.isOptional = true
    photos.inverseRelationship?.isOptional = true
    return MigrationBench.model(album, photo)
  }

  /// A context of a new coordinator, which has read nothing yet.
  func open(_ effects: Effects = .live) throws -> NSManagedObjectContext {
    let coordinator = NSPersistentStoreCoordinator(
      managedObjectModel: Self.model(),
      effects: effects
    )
    try coordinator.addPersistentStore(type: .sqlite, at: url)
    return NSManagedObjectContext(of: coordinator)
  }

  /// The names of the pictures' files.
  func files() throws -> Set<String> {
    let path = folder.file(".album_SUPPORT/_EXTERNAL_DATA").path
    return Set(try FileManager.default.contentsOfDirectory(atPath: path))
  }
}
