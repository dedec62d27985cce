import Foundation
import OpenCoreData
import RawSQLite

/// A store of many rows: measures the time to open it and the memory to iterate over it.
public struct LargeStore {
  /// The measurements.
  public struct Result: Codable {
    /// The seconds until the container is loaded.
    public var opening = 0.0
    /// The seconds of the first fetch of 20 objects.
    public var firstFetch = 0.0
    /// The seconds of an iteration over all objects.
    public var walk = 0.0
    /// The peak memory of the process, in megabytes.
    public var peakMegabytes = 0
    /// The sum of all objects' scores.
    public var score: Int64 = 0
  }

  private let url: URL

  /// Creates a description of the store's file in a folder.
  public init(folder: URL) {
    url = folder.appendingPathComponent("large.sqlite")
  }

  /// Creates the store.
  public func fill(rows: Int) throws {
    let context = try open().newBackgroundContext()
    try context.performAndWait {
      for first in stride(from: 0, to: rows, by: 10_000) {
        var number = Int64(first)
        let end = Int64(min(first + 10_000, rows))
        try context.execute(
          NSBatchInsertRequest(
            entityName: "Post",
            managedObjectHandler: { object in
              guard number < end, let post = object as? Post else { return true }
              number += 1
              post.title = "Post \(number)"
              post.content = "What the post with the number \(number) says."
              post.timestamp = Double(number)
              post.score = number % 1000
              return false
            }
          )
        )
      }
    }
  }

  /// Opens the store, fetches 20 objects and, with a batch size, iterates over all objects.
  public func measure(walksWithBatchesOf batchSize: Int?) throws -> Result {
    var result = Result()
    var start = ProcessInfo.processInfo.systemUptime
    func lap() -> Double {
      defer { start = ProcessInfo.processInfo.systemUptime }
      return ProcessInfo.processInfo.systemUptime - start
    }
    let context = try open().newBackgroundContext()
    result.opening = lap()
    try context.performAndWait {
      let first = NSFetchRequest<Post>(entityName: "Post")
      first.fetchLimit = 20
      _ = try context.fetch(first)
      result.firstFetch = lap()
      guard let batchSize else { return }
      let all = NSFetchRequest<Post>(entityName: "Post")
      all.fetchBatchSize = batchSize
      for post in try context.fetch(all) { result.score += post.score }
      result.walk = lap()
    }
    return result
  }

  private func open() throws -> NSPersistentContainer {
    let container = NSPersistentContainer(
      name: "Workload",
      managedObjectModel: WorkloadModel.shared
    )
    container.persistentStoreDescriptions = [NSPersistentStoreDescription(url: url)]
    var failure: (any Error)?
    container.loadPersistentStores { _, error in failure = error }
    if let failure { throw failure }
    return container
  }

  /// The bytes of one object among `count` registered ones: as a fault, and loaded.
  public func bytesPerObject(count: Int) throws -> (fault: Int, loaded: Int) {
    let container = try open()
    func bytes(loaded: Bool) throws -> Int {
      let context = container.newBackgroundContext()
      return try context.performAndWait {
        let request = NSFetchRequest<Post>(entityName: "Post")
        request.fetchLimit = count
        request.includesPropertyValues = loaded
        request.returnsObjectsAsFaults = !loaded
        let before = Int(raw_allocated_bytes())
        let posts = try context.fetch(request)
        return withExtendedLifetime(posts) {
          (Int(raw_allocated_bytes()) - before) / max(1, posts.count)
        }
      }
    }
    return (try bytes(loaded: false), try bytes(loaded: true))
  }
}
