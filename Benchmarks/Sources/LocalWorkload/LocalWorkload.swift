import Foundation
import OpenCoreData
import RawSQLite

/// The common local workload: posts, attachments and tags, saved in transactions of 1,000.
public struct LocalWorkload {
  /// The number of tags.
  public static let tagCount: Int64 = 200
  /// The number of posts that one transaction inserts.
  public static let batch: Int64 = 1000
  /// The number of posts that are looked up, updated and deleted.
  public static let changes: Int64 = 10_000

  private let posts: Int64
  private let folder: URL

  /// Creates a workload of `posts` objects in a folder that the caller removes.
  public init(posts: Int64, folder: URL) {
    self.posts = posts
    self.folder = folder
  }

  /// Runs the same phases with SQLite's C API.
  public func runRaw() throws -> WorkloadResult {
    struct RawFailure: Error { var code: Int32 }
    var raw = raw_sqlite_result()
    let code = raw_sqlite_run(folder.appendingPathComponent("raw.sqlite").path, posts, &raw)
    guard code == 0 else { throw RawFailure(code: code) }
    let batch = folder.appendingPathComponent("raw-batch.sqlite").path
    let batchCode = raw_sqlite_run_batch(batch, posts, &raw)
    guard batchCode == 0 else { throw RawFailure(code: batchCode) }
    return WorkloadResult(
      seconds: [
        .insert: raw.insert, .fetch: raw.fetch, .byID: raw.by_id, .traverse: raw.traverse,
        .update: raw.update, .delete: raw.erase, .batchHandler: raw.batch,
      ],
      sums: [
        "rows": raw.fetch_rows, "score": raw.fetch_score, "length": raw.fetch_length,
        "by id": raw.by_id_score, "tags": raw.tag_names, "sizes": raw.attachment_sizes,
      ]
    )
  }

  /// Runs the phases with managed objects; without the first phase, on the file of an earlier run.
  public func run(
    tracksHistory: Bool,
    phases: Set<Phase> = Set(Phase.allCases)
  ) throws -> WorkloadResult {
    let name = tracksHistory ? "history" : "objects"
    let url = folder.appendingPathComponent("\(name).sqlite")
    let result = WorkloadResult()
    if phases.contains(.insert) { try insert(open(url, tracksHistory), result) }
    // The row cache of a newly opened store is empty.
    if phases.contains(.fetch) { try fetch(open(url, tracksHistory), result) }
    for group in Self.groups where !phases.isDisjoint(with: group) {
      let container = try open(url, tracksHistory)
      let ids = try identifiers(container)
      for phase in group where phases.contains(phase) {
        try run(phase, container, ids, result)
      }
    }
    if phases.contains(.batchHandler) { try batchInsert(.batchHandler, tracksHistory, result) }
    if phases.contains(.batchDictionaries) {
      try batchInsert(.batchDictionaries, tracksHistory, result)
    }
    return result
  }

  /// Phases that use the row cache that the preceding phases filled.
  private static let groups: [[Phase]] = [
    [.byID, .byIDCached], [.traverse, .traverseWarm], [.traversePrefetched], [.traverseNSSet],
    [.update], [.delete],
  ]

  private func run(
    _ phase: Phase,
    _ container: NSPersistentContainer,
    _ ids: [NSManagedObjectID],
    _ result: WorkloadResult
  ) throws {
    switch phase {
    case .byID, .byIDCached: try byID(container, phase, ids, result)
    case .traversePrefetched: try traversePrefetched(container, result)
    case .traverse, .traverseWarm, .traverseNSSet: try traverse(container, phase, ids, result)
    case .update: try update(container, ids, result)
    case .delete: try delete(container, ids, result)
    case .insert, .fetch, .batchHandler, .batchDictionaries: break
    }
  }

  private func open(_ url: URL, _ tracksHistory: Bool) throws -> NSPersistentContainer {
    let container = NSPersistentContainer(
      name: "Workload",
      managedObjectModel: WorkloadModel.shared
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

  /// The identifiers of the posts, in the order of their insertion.
  private func identifiers(_ container: NSPersistentContainer) throws -> [NSManagedObjectID] {
    let context = container.newBackgroundContext()
    return try context.performAndWait {
      let request = NSFetchRequest<NSManagedObjectID>(entityName: "Post")
      request.resultType = .managedObjectIDResultType
      // Primary keys are assigned in order, and a table is read in the order of its keys.
      return try context.fetch(request)
    }
  }

  // MARK: Phases

  private func insert(
    _ container: NSPersistentContainer,
    _ result: WorkloadResult
  ) throws {
    let context = container.newBackgroundContext()
    try context.performAndWait {
      var tags: [Tag] = []
      for first in stride(from: 1, through: posts, by: Int64.Stride(Self.batch)) {
        let data = (first...min(first + Self.batch - 1, posts)).map(PostData.init)
        try result.measure(.insert) {
          if first == 1 {
            for number in 0..<Self.tagCount {
              let tag = Tag(context: context)
              tag.name = PostData.tagName(number)
              tags.append(tag)
            }
          }
          for item in data { insert(item, tags, context) }
          try context.save()
        }
      }
    }
  }

  private func insert(
    _ item: PostData,
    _ tags: [Tag],
    _ context: NSManagedObjectContext
  ) {
    let post = Post(context: context)
    post.title = item.title
    post.content = item.content
    post.timestamp = item.timestamp
    post.score = item.score
    post.tags = Set(item.tags.map { tags[Int($0)] })
    let attachment = Attachment(context: context)
    attachment.name = item.attachmentName
    attachment.size = item.attachmentSize
    attachment.post = post
  }

  /// Inserts posts without relationships, in one request for each 1,000.
  private func batchInsert(
    _ phase: Phase,
    _ tracksHistory: Bool,
    _ result: WorkloadResult
  ) throws {
    let url = folder.appendingPathComponent("\(phase).sqlite")
    let context = try open(url, tracksHistory).newBackgroundContext()
    try context.performAndWait {
      for first in stride(from: 1, through: posts, by: Int64.Stride(Self.batch)) {
        let data = (first...min(first + Self.batch - 1, posts)).map(PostData.init)
        let request = phase == .batchHandler ? handlerRequest(data) : dictionaryRequest(data)
        try result.measure(phase) { try context.execute(request) }
      }
    }
  }

  private func handlerRequest(_ data: [PostData]) -> NSBatchInsertRequest {
    var index = 0
    return NSBatchInsertRequest(
      entityName: "Post",
      managedObjectHandler: { object in
        guard index < data.count, let post = object as? Post else { return true }
        let item = data[index]
        post.title = item.title
        post.content = item.content
        post.timestamp = item.timestamp
        post.score = item.score
        index += 1
        return false
      }
    )
  }

  private func dictionaryRequest(_ data: [PostData]) -> NSBatchInsertRequest {
    NSBatchInsertRequest(
      entityName: "Post",
      objects: data.map {
        [
          "title": $0.title, "content": $0.content, "timestamp": $0.timestamp, "score": $0.score,
        ]
      }
    )
  }

  private func fetch(_ container: NSPersistentContainer, _ result: WorkloadResult) throws {
    let context = container.newBackgroundContext()
    try context.performAndWait {
      try result.measure(.fetch) {
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
    _ phase: Phase,
    _ ids: [NSManagedObjectID],
    _ result: WorkloadResult
  ) throws {
    let context = container.newBackgroundContext()
    try context.performAndWait {
      try result.measure(phase) {
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

  /// Follows every post's relationships, one post after the other.
  private func traverse(
    _ container: NSPersistentContainer,
    _ phase: Phase,
    _ ids: [NSManagedObjectID],
    _ result: WorkloadResult
  ) throws {
    let context = container.newBackgroundContext()
    context.performAndWait {
      result.measure(phase) {
        var sums = TraversalSums()
        for id in ids {
          guard let post = context.object(with: id) as? Post else { continue }
          if phase == .traverseNSSet { sums.addUntyped(post) } else { sums.add(post) }
        }
        sums.report(to: result)
      }
    }
  }

  /// Follows the relationships after a fetch that prefetches them.
  private func traversePrefetched(
    _ container: NSPersistentContainer,
    _ result: WorkloadResult
  ) throws {
    let context = container.newBackgroundContext()
    try context.performAndWait {
      try result.measure(.traversePrefetched) {
        let request = NSFetchRequest<Post>(entityName: "Post")
        request.includesPropertyValues = false
        request.relationshipKeyPathsForPrefetching = ["tags", "attachments"]
        var sums = TraversalSums()
        for post in try context.fetch(request) { sums.add(post) }
        sums.report(to: result)
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
      try result.measure(.update) {
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
      try result.measure(.delete) {
        for k in Int64(0)..<10_000 {
          context.delete(context.object(with: ids[Int((k * 7907 + 29) % posts)]))
          if k % Self.batch == Self.batch - 1 { try context.save() }
        }
      }
    }
  }
}

/// The sums of the values that the traversal read.
private struct TraversalSums {
  private var names: Int64 = 0
  private var sizes: Int64 = 0

  mutating func add(_ post: Post) {
    for tag in post.tags { names += Int64(tag.name?.utf8.count ?? 0) }
    for attachment in post.attachments { sizes += attachment.size }
  }

  /// Uses relationships that are declared as `NSSet?`.
  mutating func addUntyped(_ post: Post) {
    for case let tag as Tag in post.untypedTags ?? NSSet() {
      names += Int64(tag.name?.utf8.count ?? 0)
    }
    for case let attachment as Attachment in post.untypedAttachments ?? NSSet() {
      sizes += attachment.size
    }
  }

  func report(to result: WorkloadResult) {
    result.sums["tags"] = names
    result.sums["sizes"] = sizes
  }
}
