import Foundation
import OpenCoreData
import RawSQLite

/// The seconds and the sums of one run of the workload.
public final class WorkloadResult: Codable {
  /// Seconds by phase.
  public var seconds: [Phase: Double]
  /// What was read, to be the same in every engine.
  public var sums: [String: Int64]
  /// The most memory the process held, in megabytes.
  public var peakMegabytes = 0

  init(seconds: [Phase: Double] = [:], sums: [String: Int64] = [:]) {
    self.seconds = seconds
    self.sums = sums
  }
}

/// A part of the workload that is timed by itself.
public enum Phase: String, CaseIterable, Codable, Sendable {
  case insert
  case fetch
  case byID = "by id, cold"
  case byIDCached = "by id, row cache"
  case traverse = "traverse, cold"
  case traverseWarm = "traverse, warm"
  case traversePrefetched = "traverse, prefetched"
  case traverseNSSet = "traverse, NSSet"
  case update
  case delete

  /// The phase of the raw engine that it is compared with.
  public var rawPhase: Phase {
    switch self {
    case .byIDCached: .byID
    case .traverseWarm, .traversePrefetched, .traverseNSSet: .traverse
    default: self
    }
  }

  /// The ratio to raw that is aimed at; nil where the figure is reported alone.
  public var target: Double? {
    switch self {
    case .insert, .fetch, .byID, .update, .delete: 2
    case .byIDCached: 0.5
    case .traverse: 1.5
    case .traverseWarm, .traversePrefetched: 0.3
    case .traverseNSSet: nil
    }
  }
}

/// The common local workload: posts, attachments and tags, saved in transactions of 1,000.
public struct LocalWorkload {
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
        .insert: raw.insert, .fetch: raw.fetch, .byID: raw.by_id, .traverse: raw.traverse,
        .update: raw.update, .delete: raw.erase,
      ],
      sums: [
        "rows": raw.fetch_rows, "score": raw.fetch_score, "length": raw.fetch_length,
        "by id": raw.by_id_score, "tags": raw.tag_names, "sizes": raw.attachment_sizes,
      ]
    )
  }

  /// The phases through managed objects; without the first one, on the file of an earlier run.
  public func run(
    tracksHistory: Bool,
    phases: Set<Phase> = Set(Phase.allCases)
  ) throws -> WorkloadResult {
    let name = tracksHistory ? "history" : "objects"
    let url = folder.appendingPathComponent("\(name).sqlite")
    let result = WorkloadResult()
    if phases.contains(.insert) { try insert(open(url, tracksHistory), result) }
    // A store that was just opened has nothing in its row cache.
    var container = try open(url, tracksHistory)
    let ids = try identifiers(container)
    if phases.contains(.fetch) { try fetch(container, result) }
    container = try open(url, tracksHistory)
    for phase in [Phase.byID, .byIDCached] where phases.contains(phase) {
      try byID(container, phase, ids, result)
    }
    container = try open(url, tracksHistory)
    for phase in [Phase.traverse, .traverseWarm] where phases.contains(phase) {
      try traverse(container, phase, ids, result)
    }
    container = try open(url, tracksHistory)
    if phases.contains(.traversePrefetched) { try traversePrefetched(container, result) }
    container = try open(url, tracksHistory)
    if phases.contains(.traverseNSSet) { try traverse(container, .traverseNSSet, ids, result) }
    container = try open(url, tracksHistory)
    if phases.contains(.update) { try update(container, ids, result) }
    container = try open(url, tracksHistory)
    if phases.contains(.delete) { try delete(container, ids, result) }
    return result
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
      // Keys are handed out in order, and a table is read in the order of its keys.
      return try context.fetch(request)
    }
  }

  private func measure(
    _ phase: Phase,
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
  ) throws {
    let context = container.newBackgroundContext()
    try context.performAndWait {
      var tags: [Tag] = []
      for first in stride(from: 1, through: posts, by: Int64.Stride(Self.batch)) {
        let data = (first...min(first + Self.batch - 1, posts)).map(PostData.init)
        try measure(.insert, result) {
          if first == 1 {
            for number in 0..<Self.tagCount {
              let tag = Tag(context: context)
              tag.name = "tag" + padded(number, 3)
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
    let one = item.number * 7 % Self.tagCount
    var two = (item.number * 13 + 5) % Self.tagCount
    if one == two { two = (two + 1) % Self.tagCount }
    post.tags = [tags[Int(one)], tags[Int(two)]]
    let attachment = Attachment(context: context)
    attachment.name = "att" + padded(item.number, 6)
    attachment.size = item.number * 31 % 100_000
    attachment.post = post
  }

  private func fetch(_ container: NSPersistentContainer, _ result: WorkloadResult) throws {
    let context = container.newBackgroundContext()
    try context.performAndWait {
      try measure(.fetch, result) {
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
      try measure(phase, result) {
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

  /// Every post's relationships, one after the other.
  private func traverse(
    _ container: NSPersistentContainer,
    _ phase: Phase,
    _ ids: [NSManagedObjectID],
    _ result: WorkloadResult
  ) throws {
    let context = container.newBackgroundContext()
    context.performAndWait {
      measure(phase, result) {
        var sums = TraversalSums()
        for id in ids {
          guard let post = context.object(with: id) as? Post else { continue }
          if phase == .traverseNSSet { sums.addUntyped(post) } else { sums.add(post) }
        }
        sums.report(to: result)
      }
    }
  }

  /// The same by a fetch that brings the relationships along.
  private func traversePrefetched(
    _ container: NSPersistentContainer,
    _ result: WorkloadResult
  ) throws {
    let context = container.newBackgroundContext()
    try context.performAndWait {
      try measure(.traversePrefetched, result) {
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
      try measure(.update, result) {
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
      try measure(.delete, result) {
        for k in Int64(0)..<10_000 {
          context.delete(context.object(with: ids[Int((k * 7907 + 29) % posts)]))
          if k % Self.batch == Self.batch - 1 { try context.save() }
        }
      }
    }
  }
}

/// What following the relationships adds up to.
private struct TraversalSums {
  private var names: Int64 = 0
  private var sizes: Int64 = 0

  mutating func add(_ post: Post) {
    for tag in post.tags { names += Int64(tag.name?.utf8.count ?? 0) }
    for attachment in post.attachments { sizes += attachment.size }
  }

  /// As classes do whose relationships are declared `NSSet?`.
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
