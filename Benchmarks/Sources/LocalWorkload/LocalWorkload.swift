import Foundation
import OpenCoreData
import RawSQLite

/// The seconds and the sums of one run of the workload.
public final class WorkloadResult: Codable {
  /// Seconds by phase.
  public var seconds: [String: Double]
  /// What was read, to be the same in every engine.
  public var sums: [String: Int64]
  /// The most memory the process held, in megabytes.
  public var peakMegabytes = 0

  init(seconds: [String: Double] = [:], sums: [String: Int64] = [:]) {
    self.seconds = seconds
    self.sums = sums
  }
}

/// The common local workload: posts, attachments and tags, saved in transactions of 1,000.
public struct LocalWorkload {
  /// The phases in the order in which they run.
  public static let phases = ["insert", "fetch", "by id", "traverse", "update", "delete"]
  private static let tagCount: Int64 = 200
  private static let batch: Int64 = 1000

  private let posts: Int64
  private let folder: URL

  /// `posts` objects, in a folder that is removed afterwards by the caller.
  public init(posts: Int64, folder: URL) {
    self.posts = posts
    self.folder = folder
  }

  /// The same phases against SQLite's C API.
  public func runRaw() throws -> WorkloadResult {
    struct RawFailure: Error { var code: Int32 }
    var raw = raw_sqlite_result()
    let code = raw_sqlite_run(folder.appendingPathComponent("raw.sqlite").path, posts, &raw)
    guard code == 0 else { throw RawFailure(code: code) }
    return WorkloadResult(
      seconds: [
        "insert": raw.insert, "fetch": raw.fetch, "by id": raw.by_id, "traverse": raw.traverse,
        "update": raw.update, "delete": raw.erase,
      ],
      sums: [
        "rows": raw.fetch_rows, "score": raw.fetch_score, "length": raw.fetch_length,
        "by id": raw.by_id_score, "tags": raw.tag_names, "sizes": raw.attachment_sizes,
      ]
    )
  }

  /// The phases through managed objects.
  public func run(tracksHistory: Bool) throws -> WorkloadResult {
    let name = tracksHistory ? "history" : "objects"
    let url = folder.appendingPathComponent("\(name).sqlite")
    let container = try open(url, tracksHistory)
    let result = WorkloadResult()
    let ids = try insert(container, result)
    try fetch(container, result)
    try byID(container, ids, result)
    try traverse(container, ids, result)
    try update(container, ids, result)
    try delete(container, ids, result)
    return result
  }

  private func open(_ url: URL, _ tracksHistory: Bool) throws -> NSPersistentContainer {
    let container = NSPersistentContainer(
      name: "Workload",
      managedObjectModel: WorkloadModel.make()
    )
    let description = NSPersistentStoreDescription(url: url)
    description.setOption(
      NSNumber(value: tracksHistory),
      forKey: NSPersistentHistoryTrackingKey
    )
    container.persistentStoreDescriptions = [description]
    var failure: (any Error)?
    container.loadPersistentStores { _, error in failure = error }
    if let failure { throw failure }
    return container
  }

  private func measure(
    _ phase: String,
    _ result: WorkloadResult,
    _ body: () throws -> Void
  ) rethrows {
    let start = ProcessInfo.processInfo.systemUptime
    try body()
    result.seconds[phase, default: 0] += ProcessInfo.processInfo.systemUptime - start
  }

  // MARK: Phases

  private func insert(
    _ container: NSPersistentContainer,
    _ result: WorkloadResult
  ) throws -> [NSManagedObjectID] {
    let context = container.newBackgroundContext()
    var ids: [NSManagedObjectID] = []
    ids.reserveCapacity(Int(posts))
    try context.performAndWait {
      var tags: [Tag] = []
      for first in stride(from: 1, through: posts, by: Int64.Stride(Self.batch)) {
        let data = (first...min(first + Self.batch - 1, posts)).map(PostData.init)
        try measure("insert", result) {
          if first == 1 {
            for number in 0..<Self.tagCount {
              let tag = Tag(context: context)
              tag.name = "tag" + padded(number, 3)
              tags.append(tag)
            }
          }
          var made: [Post] = []
          made.reserveCapacity(data.count)
          for item in data { made.append(insert(item, tags, context)) }
          try context.save()
          ids.append(contentsOf: made.map(\.objectID))
        }
      }
    }
    return ids
  }

  private func insert(
    _ item: PostData,
    _ tags: [Tag],
    _ context: NSManagedObjectContext
  ) -> Post {
    let post = Post(context: context)
    post.title = item.title
    post.content = item.content
    post.timestamp = item.timestamp
    post.score = item.score
    let one = item.number * 7 % Self.tagCount
    var two = (item.number * 13 + 5) % Self.tagCount
    if one == two { two = (two + 1) % Self.tagCount }
    post.tags = [tags[Int(one)], tags[Int(two)]]
    let attachment = Attachment(context: context)
    attachment.name = "att" + padded(item.number, 6)
    attachment.size = item.number * 31 % 100_000
    attachment.post = post
    return post
  }

  private func fetch(_ container: NSPersistentContainer, _ result: WorkloadResult) throws {
    let context = container.newBackgroundContext()
    try context.performAndWait {
      try measure("fetch", result) {
        let request = NSFetchRequest<Post>(entityName: "Post")
        request.predicate = NSPredicate(format: "score >= 500")
        request.sortDescriptors = [NSSortDescriptor(key: "timestamp", ascending: false)]
        request.returnsObjectsAsFaults = false
        let found = try context.fetch(request)
        result.sums["rows"] = Int64(found.count)
        var score: Int64 = 0
        var length: Int64 = 0
        for post in found {
          score += post.score
          length += Int64(post.content?.utf8.count ?? 0)
        }
        result.sums["score"] = score
        result.sums["length"] = length
      }
    }
  }

  private func byID(
    _ container: NSPersistentContainer,
    _ ids: [NSManagedObjectID],
    _ result: WorkloadResult
  ) throws {
    let context = container.newBackgroundContext()
    try context.performAndWait {
      try measure("by id", result) {
        var random = SplitMix(state: 42)
        var sum: Int64 = 0
        for _ in 0..<10_000 {
          let index = Int(random.next() % UInt64(posts))
          if let post = try context.existingObject(with: ids[index]) as? Post { sum += post.score }
        }
        result.sums["by id"] = sum
      }
    }
  }

  private func traverse(
    _ container: NSPersistentContainer,
    _ ids: [NSManagedObjectID],
    _ result: WorkloadResult
  ) throws {
    let context = container.newBackgroundContext()
    context.performAndWait {
      measure("traverse", result) {
        var names: Int64 = 0
        var sizes: Int64 = 0
        for id in ids {
          guard let post = context.object(with: id) as? Post else { continue }
          for tag in post.tags { names += Int64(tag.name?.utf8.count ?? 0) }
          for attachment in post.attachments { sizes += attachment.size }
        }
        result.sums["tags"] = names
        result.sums["sizes"] = sizes
      }
    }
  }

  private func update(
    _ container: NSPersistentContainer,
    _ ids: [NSManagedObjectID],
    _ result: WorkloadResult
  ) throws {
    let context = container.newBackgroundContext()
    try context.performAndWait {
      try measure("update", result) {
        for k in Int64(0)..<10_000 {
          let index = Int((k * 7919 + 13) % posts)
          guard let post = context.object(with: ids[index]) as? Post else { continue }
          post.title = (post.title ?? "") + "!"
          post.score += 1
          if k % Self.batch == Self.batch - 1 { try context.save() }
        }
      }
    }
  }

  private func delete(
    _ container: NSPersistentContainer,
    _ ids: [NSManagedObjectID],
    _ result: WorkloadResult
  ) throws {
    let context = container.newBackgroundContext()
    try context.performAndWait {
      try measure("delete", result) {
        for k in Int64(0)..<10_000 {
          context.delete(context.object(with: ids[Int((k * 7907 + 29) % posts)]))
          if k % Self.batch == Self.batch - 1 { try context.save() }
        }
      }
    }
  }
}
