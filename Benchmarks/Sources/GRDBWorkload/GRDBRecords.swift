import GRDB

/// The workload's records with hand-written rows, GRDB's fastest form.
struct GRDBPost: FetchableRecord, PersistableRecord {
  static let databaseTableName = "post"
  static let attachments = hasMany(GRDBAttachment.self, using: ForeignKey(["post"]))
  static let links = hasMany(GRDBLink.self, using: ForeignKey(["post"]))
  static let tags = hasMany(GRDBTag.self, through: links, using: GRDBLink.tag)

  var id: Int64
  var title: String
  var content: String
  var timestamp: Double
  var score: Int64

  init(id: Int64, title: String, content: String, timestamp: Double, score: Int64) {
    self.id = id
    self.title = title
    self.content = content
    self.timestamp = timestamp
    self.score = score
  }

  init(row: Row) {
    id = row[0]
    title = row[1]
    content = row[2]
    timestamp = row[3]
    score = row[4]
  }

  func encode(to container: inout PersistenceContainer) {
    container["id"] = id
    container["title"] = title
    container["content"] = content
    container["timestamp"] = timestamp
    container["score"] = score
  }
}

struct GRDBAttachment: FetchableRecord, PersistableRecord {
  static let databaseTableName = "attachment"

  var id: Int64
  var name: String
  var size: Int64
  var post: Int64

  init(id: Int64, name: String, size: Int64, post: Int64) {
    self.id = id
    self.name = name
    self.size = size
    self.post = post
  }

  init(row: Row) {
    id = row[0]
    name = row[1]
    size = row[2]
    post = row[3]
  }

  func encode(to container: inout PersistenceContainer) {
    container["id"] = id
    container["name"] = name
    container["size"] = size
    container["post"] = post
  }
}

struct GRDBTag: FetchableRecord, PersistableRecord {
  static let databaseTableName = "tag"

  var id: Int64
  var name: String

  init(id: Int64, name: String) {
    self.id = id
    self.name = name
  }

  init(row: Row) {
    id = row[0]
    name = row[1]
  }

  func encode(to container: inout PersistenceContainer) {
    container["id"] = id
    container["name"] = name
  }
}

struct GRDBLink: FetchableRecord, PersistableRecord {
  static let databaseTableName = "post_tag"
  static let tag = belongsTo(GRDBTag.self, using: ForeignKey(["tag"]))

  var post: Int64
  var tag: Int64

  init(post: Int64, tag: Int64) {
    self.post = post
    self.tag = tag
  }

  init(row: Row) {
    post = row[0]
    tag = row[1]
  }

  func encode(to container: inout PersistenceContainer) {
    container["post"] = post
    container["tag"] = tag
  }
}
