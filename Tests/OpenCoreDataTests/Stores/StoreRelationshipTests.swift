import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

@Suite("Relationships of rows")
struct StoreRelationshipTests {
  @Test("One-to-many, many-to-many and inverse-less relationships return the right rows")
  func kinds() throws {
    let world = try SampleStore()
    let post = try world.insert("ImagePost", ["title": .string("a")])
    let second = try world.insert("Post", ["title": .string("b")])
    let comments = try (0..<3).map { _ in try world.insert("Comment", ["post": .reference(post)]) }
    #expect(try world.value(comments[0], "post") == .reference(post))
    let tags = try ["x", "y"].map { try world.insert("Tag", ["name": .string($0)]) }
    let person = try world.insert("Person")
    var changes = RowChanges()
    let postTags = try world.relationship("Post", "tags")
    let bookmarks = try world.relationship("Person", "bookmarks")
    changes.links = [
      .init(relationship: postTags, source: post, destination: tags[0], isInsertion: true),
      .init(relationship: postTags, source: post, destination: tags[1], isInsertion: true),
      .init(relationship: postTags, source: second, destination: tags[1], isInsertion: true),
      .init(relationship: bookmarks, source: person, destination: post, isInsertion: true),
    ]
    _ = try world.store.commit(changes)
    let store = world.store
    #expect(
      try store.destinations(
        of: try world.relationship("Post", "comments"),
        from: [post, second]
      ) == [post: comments]
    )
    #expect(
      try store.destinations(of: postTags, from: [second, post])
        == [post: tags, second: [tags[1]]]
    )
    #expect(
      try store.destinations(of: try world.relationship("Tag", "posts"), from: tags)
        == [tags[0]: [post], tags[1]: [post, second]]
    )
    #expect(try store.destinations(of: bookmarks, from: [person]) == [person: [post]])
    changes = RowChanges()
    changes.links = [
      .init(relationship: postTags, source: post, destination: tags[1], isInsertion: false)
    ]
    _ = try world.store.commit(changes)
    #expect(try store.destinations(of: postTags, from: [post]) == [post: [tags[0]]])
  }

  @Test("A relationship that is its own inverse is readable from both ends")
  func reflexive() throws {
    let world = try SampleStore()
    let people = try (0..<3).map { _ in try world.insert("Person") }
    let friends = try world.relationship("Person", "friends")
    try world.store.write(author: nil) {
      try $0.addLink(friends, people[0], people[1])
      try $0.addLink(friends, people[2], people[0])
    }
    #expect(
      try world.store.destinations(of: friends, from: people)
        == [people[0]: [people[1], people[2]], people[1]: [people[0]], people[2]: [people[0]]]
    )
    try world.store.write(author: nil) { try $0.removeLink(friends, people[1], people[0]) }
    #expect(
      try world.store.destinations(of: friends, from: people)
        == [people[0]: [people[2]], people[2]: [people[0]]]
    )
    let plain = try SQLiteConnection(path: world.url.path, mode: .readOnly)
    let number = try world.table("Person").number
    let columns = try plain.query("SELECT name FROM pragma_table_info('Z_\(number)FRIENDS')") {
      $0.text(0)
    }
    #expect(columns == ["Z_\(number)FRIENDS", "REFLEXIVE"])
  }

  @Test("Orders are stored, and moving one member changes few keys")
  func ordered() throws {
    let world = try SampleStore()
    let list = try world.insert("List")
    let entries = try world.relationship("List", "entries")
    let comments = try (0..<10).map { _ in try world.insert("Comment", ["list": .reference(list)]) }
    func setOrder(_ order: [RowReference]) throws {
      var changes = RowChanges()
      changes.orders = [.init(relationship: entries, source: list, destinations: order)]
      _ = try world.store.commit(changes)
      #expect(try world.store.destinations(of: entries, from: [list])[list] == order)
    }
    func keys() throws -> [Int64: Int64] {
      let plain = try SQLiteConnection(path: world.url.path, mode: .readOnly)
      return Dictionary(
        uniqueKeysWithValues: try plain.query("SELECT Z_PK, Z_FOK_LIST FROM ZCOMMENT") {
          ($0.int64(0), $0.int64(1))
        }
      )
    }
    try setOrder(comments)
    let before = try keys()
    var moved = comments
    moved.insert(moved.removeLast(), at: 1)
    try setOrder(moved)
    let after = try keys()
    #expect(before.filter { after[$0.key] != $0.value }.count == 1)
    try setOrder(moved.reversed())
    let people = try (0..<4).map { _ in try world.insert("Person") }
    let members = try world.relationship("List", "people")
    var changes = RowChanges()
    changes.links = people.map {
      .init(relationship: members, source: list, destination: $0, isInsertion: true)
    }
    let wanted = [people[2], people[0], people[3], people[1]]
    changes.orders = [.init(relationship: members, source: list, destinations: wanted)]
    _ = try world.store.commit(changes)
    #expect(try world.store.destinations(of: members, from: [list])[list] == wanted)
  }

  @Test("Deleting a row removes its links and applies its delete rules")
  func deleting() throws {
    let world = try SampleStore()
    let post = try world.insert("ImagePost")
    let comment = try world.insert("Comment", ["post": .reference(post)])
    let tag = try world.insert("Tag", ["name": .string("t")])
    let person = try world.insert("Person")
    let image = try world.insert("Image")
    let tags = try world.relationship("Post", "tags")
    let bookmarks = try world.relationship("Person", "bookmarks")
    try world.store.write(author: nil) { transaction in
      try transaction.addLink(tags, post, tag)
      try transaction.addLink(bookmarks, person, post)
      try transaction.update(
        post,
        set: [try world.index("ImagePost", "image"): .reference(image)]
      )
    }
    #expect(try world.value(image, "post") == .reference(post))
    let deleted = try world.store.write(author: nil) { transaction in
      try transaction.delete(post)
      return transaction.deletedRows
    }
    #expect(Set(deleted) == [post, comment])
    #expect(try world.store.row(comment).found == nil)
    #expect(try world.value(image, "post") == .null)
    let plain = try SQLiteConnection(path: world.url.path, mode: .readOnly)
    let names = try plain.query("SELECT name FROM sqlite_master WHERE name LIKE '%TAGS'") {
      $0.text(0)
    }
    #expect(try plain.scalar("SELECT COUNT(*) FROM \(try #require(names.first))") == .integer(0))
  }

  @Test("Setting a one-to-one clears the partner's former partner")
  func oneToOne() throws {
    let world = try SampleStore()
    let first = try world.insert("ImagePost")
    let second = try world.insert("ImagePost")
    let images = try (0..<2).map { _ in try world.insert("Image") }
    let slot = try world.index("ImagePost", "image")
    try world.store.write(author: nil) { transaction in
      try transaction.update(first, set: [slot: .reference(images[0])])
      try transaction.update(second, set: [slot: .reference(images[1])])
    }
    try world.store.write(author: nil) {
      try $0.update(first, set: [slot: .reference(images[1])])
    }
    #expect(try world.value(first, "image") == .reference(images[1]))
    #expect(try world.value(second, "image") == .null)
    #expect(try world.value(images[0], "post") == .null)
    #expect(try world.value(images[1], "post") == .reference(first))
  }

  @Test("Derived attributes follow their sources")
  func derived() throws {
    let world = try SampleStore()
    let post = try world.insert("Post", ["title": .string("Été à PARIS")])
    #expect(try world.value(post, "searchTitle") == .string("ete a paris"))
    #expect(try world.value(post, "commentCount") == .integer(0))
    #expect(try world.value(post, "savedAt")?.isNull == false)
    let comments = try (1...3).map {
      try world.insert("Comment", ["post": .reference(post), "stars": .integer($0)])
    }
    #expect(try world.value(post, "commentCount") == .integer(3))
    #expect(try world.value(post, "scoreSum") == .integer(6))
    #expect(try world.value(comments[0], "postTitle") == .string("Été à PARIS"))
    var changes = RowChanges()
    changes.updated = [
      try world.update(post, ["title": .string("London")]),
      try world.update(comments[2], ["post": .null]),
    ]
    let commit = try world.store.commit(changes)
    #expect(commit.rows.contains { $0.reference == comments[0] })
    #expect(try world.value(post, "searchTitle") == .string("london"))
    #expect(try world.value(post, "commentCount") == .integer(2))
    #expect(try world.value(post, "scoreSum") == .integer(3))
    #expect(try world.value(comments[0], "postTitle") == .string("London"))
    #expect(try world.value(comments[2], "postTitle") == .null)
  }
}
