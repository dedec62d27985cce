import Foundation
import GRDB
import LocalWorkload

/// The common local workload, implemented with GRDB.
public struct GRDBWorkload {
  private let posts: Int64
  private let folder: URL

  /// Creates a workload of `posts` records in a folder that the caller removes.
  public init(posts: Int64, folder: URL) {
    self.posts = posts
    self.folder = folder
  }

  /// Runs all phases on a new file.
  public func run() throws -> WorkloadResult {
    var configuration = Configuration()
    configuration.prepareDatabase { db in
      try db.execute(sql: "PRAGMA synchronous = NORMAL")
    }
    let pool = try DatabasePool(
      path: folder.appendingPathComponent("grdb.sqlite").path,
      configuration: configuration
    )
    try pool.write { db in try db.execute(sql: Self.schema) }
    let result = WorkloadResult()
    try insert(pool, result)
    try fetch(pool, result)
    try byID(pool, result)
    try traverse(pool, result)
    try update(pool, result)
    try delete(pool, result)
    return result
  }

  private static let schema = """
    CREATE TABLE post (id INTEGER PRIMARY KEY, title TEXT, content TEXT, timestamp REAL,
      score INTEGER);
    CREATE TABLE attachment (id INTEGER PRIMARY KEY, name TEXT, size INTEGER, post INTEGER);
    CREATE INDEX attachment_post ON attachment (post);
    CREATE TABLE tag (id INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE post_tag (post INTEGER, tag INTEGER, PRIMARY KEY (post, tag));
    CREATE INDEX post_tag_tag ON post_tag (tag, post);
    """

  private func insert(_ pool: DatabasePool, _ result: WorkloadResult) throws {
    let batch = LocalWorkload.batch
    for first in stride(from: 1, through: posts, by: Int64.Stride(batch)) {
      let data = (first...min(first + batch - 1, posts)).map(PostData.init)
      try result.measure(.insert) {
        try pool.write { db in
          if first == 1 {
            for number in 0..<LocalWorkload.tagCount {
              try GRDBTag(id: number + 1, name: PostData.tagName(number)).insert(db)
            }
          }
          for item in data {
            try GRDBPost(
              id: item.number,
              title: item.title,
              content: item.content,
              timestamp: item.timestamp,
              score: item.score
            )
            .insert(db)
            try GRDBAttachment(
              id: item.number,
              name: item.attachmentName,
              size: item.attachmentSize,
              post: item.number
            )
            .insert(db)
            for tag in item.tags { try GRDBLink(post: item.number, tag: tag + 1).insert(db) }
          }
        }
      }
    }
  }

  private func fetch(_ pool: DatabasePool, _ result: WorkloadResult) throws {
    try result.measure(.fetch) {
      let found = try pool.read { db in
        try GRDBPost.filter(Column("score") >= 500)
          .order(Column("timestamp").desc, Column("id")).fetchAll(db)
      }
      result.sums["rows"] = Int64(found.count)
      result.sums["score"] = found.reduce(0) { $0 + $1.score }
      result.sums["length"] = found.reduce(0) { $0 + Int64($1.content.utf8.count) }
    }
  }

  private func byID(_ pool: DatabasePool, _ result: WorkloadResult) throws {
    try result.measure(.byID) {
      var random = SplitMix(state: 42)
      var sum: Int64 = 0
      try pool.read { db in
        for _ in 0..<LocalWorkload.changes {
          let id = Int64(random.next() % UInt64(posts)) + 1
          if let post = try GRDBPost.fetchOne(db, key: id) { sum += post.score }
        }
      }
      result.sums["by id"] = sum
    }
  }

  private func traverse(_ pool: DatabasePool, _ result: WorkloadResult) throws {
    try result.measure(.traverse) {
      var names: Int64 = 0
      var sizes: Int64 = 0
      try pool.read { db in
        for id in 1...posts {
          let post = GRDBPost(id: id, title: "", content: "", timestamp: 0, score: 0)
          for tag in try post.request(for: GRDBPost.tags).fetchAll(db) {
            names += Int64(tag.name.utf8.count)
          }
          for attachment in try post.request(for: GRDBPost.attachments).fetchAll(db) {
            sizes += attachment.size
          }
        }
      }
      result.sums["tags"] = names
      result.sums["sizes"] = sizes
    }
  }

  private func update(_ pool: DatabasePool, _ result: WorkloadResult) throws {
    try result.measure(.update) {
      for first in stride(from: Int64(0), to: LocalWorkload.changes, by: 1000) {
        try pool.write { db in
          for k in first..<first + 1000 {
            guard var post = try GRDBPost.fetchOne(db, key: (k * 7919 + 13) % posts + 1) else {
              continue
            }
            post.title += "!"
            post.score += 1
            try post.update(db)
          }
        }
      }
    }
  }

  private func delete(_ pool: DatabasePool, _ result: WorkloadResult) throws {
    try result.measure(.delete) {
      for first in stride(from: Int64(0), to: LocalWorkload.changes, by: 1000) {
        try pool.write { db in
          for k in first..<first + 1000 {
            let id = (k * 7907 + 29) % posts + 1
            try GRDBAttachment.filter(Column("post") == id).deleteAll(db)
            try GRDBLink.filter(Column("post") == id).deleteAll(db)
            try GRDBPost.deleteOne(db, key: id)
          }
        }
      }
    }
  }
}
