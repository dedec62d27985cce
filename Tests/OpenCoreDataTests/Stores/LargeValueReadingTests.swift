import Effects
import Foundation
import OpenCoreData
import Testing

@Suite("The files of large values are read when the values are")
struct LargeValueReadingTests {
  private static let byteCount = 200_000

  private func pictures(_ photos: [NSManagedObject]) -> [Data?] {
    photos.map { $0.value(forKey: "picture") as? Data }
  }

  private func pictures(from first: Int, count: Int) -> [Data?] {
    (first..<first + count).map { PhotoAlbum.picture($0, Self.byteCount) }
  }

  /// The photos of a context, which has read their rows.
  private func photos(_ context: NSManagedObjectContext) throws -> [NSManagedObject] {
    try context.performAndWait {
      let photos = try context.all("Photo", by: "number")
      for photo in photos { _ = photo.value(forKey: "title") }
      return photos
    }
  }

  /// Replaces the pictures of all photos in another context of the coordinator.
  private func replacePictures(_ context: NSManagedObjectContext) throws {
    try context.performAndWait {
      for (number, photo) in try context.all("Photo", by: "number").enumerated() {
        photo.setValue(PhotoAlbum.picture(number + 100, Self.byteCount), forKey: "picture")
      }
      try context.save()
    }
  }

  @Test("An object has the value of its row after another context removed the file")
  func removedFiles() throws {
    let album = try PhotoAlbum(photos: 3, byteCount: Self.byteCount)
    let context = try album.open()
    let photos = try photos(context)
    let former = try album.files()
    try replacePictures(NSManagedObjectContext(of: context.persistentStoreCoordinator))
    let present = try album.files()
    #expect(present.isDisjoint(with: former) && present.count == 3)
    context.performAndWait {
      #expect(pictures(photos) == pictures(from: 0, count: 3))
      context.refreshAllObjects()
      #expect(pictures(photos) == pictures(from: 100, count: 3))
    }
  }

  @Test("More files than may be mapped stay while rows refer to them")
  func manyFiles() throws {
    let album = try PhotoAlbum(photos: 4, byteCount: Self.byteCount)
    var effects = Effects.live
    effects.mappings = FileMappings(limit: 1)
    let context = try album.open(effects)
    let other = NSManagedObjectContext(of: context.persistentStoreCoordinator)
    let photos = try photos(context)
    let former = try album.files()
    try replacePictures(other)
    let kept = try album.files().intersection(former)
    #expect(kept.count == 3)
    context.performAndWait {
      #expect(pictures(photos) == pictures(from: 0, count: 4))
      context.refreshAllObjects()
      #expect(pictures(photos) == pictures(from: 100, count: 4))
    }
    let albums = try other.performAndWait { try other.all("Album").count }
    let left = try album.files()
    #expect(albums == 1)
    #expect(left.isDisjoint(with: former) && left.count == 4)
  }

  @Test("A file that could not be mapped and that another process removed reads as nil")
  func lostFile() throws {
    let album = try PhotoAlbum(photos: 1, byteCount: Self.byteCount)
    var effects = Effects.live
    effects.mappings = FileMappings(limit: 0)
    let context = try album.open(effects)
    try context.performAndWait {
      let photo = try #require(try context.all("Photo").first)
      for name in try album.files() {
        let path = album.folder.file(".album_SUPPORT/_EXTERNAL_DATA/\(name)").path
        try FileManager.default.removeItem(atPath: path)
      }
      #expect(photo.value(forKey: "picture") == nil)
      // Another change of the object does not write the missing value.
      photo.setValue("Beach", forKey: "title")
      #expect(photo.changedValues().keys.sorted() == ["title"])
    }
  }

  @Test("Changing a value in place changes neither the row nor the file")
  func changeInPlace() throws {
    let album = try PhotoAlbum(photos: 1, byteCount: Self.byteCount)
    let expected = PhotoAlbum.picture(0, Self.byteCount)
    let context = try album.open()
    try context.performAndWait {
      var bytes = Data()
      do {
        let photo = try #require(try context.all("Photo").first)
        bytes = try #require(photo.value(forKey: "picture") as? Data)
        bytes[0] = 77
        #expect(photo.value(forKey: "picture") as? Data == expected)
      }
      context.reset()
      bytes[1] = 78
      #expect(Array(bytes.prefix(3)) == [77, 78, 1])
    }
    let again = try album.open()
    let read = try again.performAndWait { pictures(try again.all("Photo")) }
    #expect(read == [expected])
  }

  #if os(Linux)
  @Test("Fetches, relationships and merges of 256 MB of pictures take little memory")
  func memory() async {
    await #expect(processExitsWith: .success) {
      let album = try PhotoAlbum(photos: 64, byteCount: 4 << 20)
      try LargeValueMemory.expectLittle(album, "a fetch") { context in
        let photos = try context.all("Photo", by: "number")
        return { LargeValueMemory.check(photos) }
      }
      try LargeValueMemory.expectLittle(album, "a to-many") { context in
        let photos = try context.all("Album").first?.value(forKey: "photos") as? NSSet
        precondition(photos?.count == 64)
        return { precondition((photos?.allObjects as? [NSManagedObject])?.count == 64) }
      }
      try LargeValueMemory.expectLittle(album, "prefetching") { context in
        let request = NSFetchRequest<NSManagedObject>(entityName: "Album")
        request.relationshipKeyPathsForPrefetching = ["photos"]
        let albums = try context.fetch(request)
        return { precondition(albums.count == 1) }
      }
      try LargeValueMemory.expectLittle(album, "a merge") { context in
        let photos = try context.all("Photo", by: "number")
        for photo in photos { _ = photo.value(forKey: "title") }
        let other = try album.open()
        let changed = try other.performAndWait {
          let photos = try other.all("Photo")
          for photo in photos { photo.setValue("Beach", forKey: "title") }
          try other.save()
          return photos.map(\.objectID)
        }
        NSManagedObjectContext.mergeChanges(
          fromRemoteContextSave: [NSUpdatedObjectIDsKey: changed],
          into: [context]
        )
        precondition(photos.allSatisfy { $0.value(forKey: "title") as? String == "Beach" })
        return { LargeValueMemory.check(photos) }
      }
    }
  }
  #endif
}

#if os(Linux)
/// Measures the memory of reading, in a process of its own.
enum LargeValueMemory {
  /// Stops the process if its own memory rises while a body runs, or if that reads pages of pictures.
  ///
  /// What the body returns checks the values, and is called after that.
  static func expectLittle(
    _ album: PhotoAlbum,
    _ what: String,
    _ body: (NSManagedObjectContext) throws -> () -> Void
  ) throws {
    let context = try album.open()
    try context.performAndWait {
      let before = try ownMemory()
      let check = try body(context)
      let rise = try ownMemory() - before
      precondition(rise < 32 << 10, "\(what) took \(rise) KB")
      let read = try mappedPages(album)
      precondition(read == 0, "\(what) read \(read) KB of the files")
      check()
    }
  }

  static func check(_ photos: [NSManagedObject]) {
    precondition(photos.count == 64)
    for (number, photo) in photos.enumerated() {
      let picture = photo.value(forKey: "picture") as? Data
      precondition(picture == PhotoAlbum.picture(number, 4 << 20))
    }
  }

  private static func lines(_ path: String) throws -> [Substring] {
    let text = try String(contentsOfFile: path, encoding: .utf8)
    return text.split(separator: "\n")
  }

  private static func kilobytes(_ line: Substring) -> Int {
    Int(line.filter(\.isNumber)) ?? 0
  }

  /// In kilobytes, without pages of files.
  private static func ownMemory() throws -> Int {
    kilobytes(try lines("/proc/self/status").first { $0.hasPrefix("RssAnon:") } ?? "")
  }

  /// The kilobytes of the album's files that are in memory through a mapping.
  private static func mappedPages(_ album: PhotoAlbum) throws -> Int {
    var isOurs = false
    var total = 0
    for line in try lines("/proc/self/smaps") {
      // "7f…-7f… rw-p 00000000 fe:00 1234 /path", then a line for each figure.
      if !line.prefix(while: { $0 != " " }).hasSuffix(":") {
        isOurs = line.hasSuffix("]") ? false : line.contains(album.folder.url.lastPathComponent)
      } else if isOurs, line.hasPrefix("Rss:") {
        total += kilobytes(line)
      }
    }
    return total
  }
}
#endif
