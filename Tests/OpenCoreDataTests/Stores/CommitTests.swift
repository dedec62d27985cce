import Foundation
import OpenCoreData
import Testing
import WatershedSQLite

@Suite("Saves are atomic")
struct CommitTests {
  @Test("Versions begin at 1 and grow with each update; the cache and the file agree")
  func versions() throws {
    let world = try SampleStore()
    let post = try world.insert("Post", ["title": .string("One")])
    var changes = RowChanges()
    changes.updated = [try world.update(post, ["title": .string("Two")])]
    let commit = try world.store.commit(changes)
    #expect(commit.rows.first { $0.reference == post }?.version == 2)
    world.store.forget([post])
    #expect(try world.store.row(post).found?.version == 2)
    #expect(try world.value(post, "title") == .string("Two"))
    changes = RowChanges()
    changes.deleted = [
      RowChanges.Deletion(
        reference: post,
        layout: try world.table("Post").layout,
        expectedVersion: 2
      )
    ]
    _ = try world.store.commit(changes)
    #expect(try world.store.row(post).found == nil)
  }

  @Test("An error has all stale rows of a save, and nothing of it is written")
  func conflicts() throws {
    let world = try SampleStore()
    let first = try world.insert("Post", ["title": .string("first")])
    let second = try world.insert("Post", ["title": .string("second")])
    let third = try world.insert("Post", ["title": .string("third")])
    let stale = try [first, second].map { try world.update($0, ["title": .string("mine")]) }
    var other = RowChanges()
    other.updated = [try world.update(first, ["title": .string("theirs")])]
    other.deleted = [
      RowChanges.Deletion(
        reference: second,
        layout: try world.table("Post").layout,
        expectedVersion: 1
      )
    ]
    _ = try world.store.commit(other)
    var mine = RowChanges()
    mine.updated = stale + [try world.update(third, ["title": .string("mine")])]
    mine.inserted = [try world.insertion("Post", ["title": .string("new")])]
    do {
      _ = try world.store.commit(mine)
      Issue.record("the save went through")
    } catch let error as RowConflictError {
      #expect(error.conflicts.map(\.reference) == [first, second])
      #expect(error.conflicts.map { $0.persisted?.version } == [2, nil])
    }
    #expect(try world.value(third, "title") == .string("third"))
    #expect(try world.store.row(mine.inserted[0].reference).found == nil)
  }

  @Test("The error for duplicate values has the constraint and the row that has them")
  func constraints() throws {
    let world = try SampleStore()
    let rain = try world.insert("Tag", ["name": .string("rain")])
    var changes = RowChanges()
    changes.inserted = [
      try world.insertion("Tag", ["name": .string("rain")]),
      try world.insertion("Tag", ["name": .string("snow")]),
      try world.insertion("Tag", ["name": .string("snow")]),
    ]
    do {
      _ = try world.store.commit(changes)
      Issue.record("the save went through")
    } catch let error as RowConstraintError {
      #expect(error.conflicts.count == 2)
      #expect(error.conflicts.map(\.constraint) == [["name"], ["name"]])
      #expect(
        error.conflicts.map(\.existing) == [rain, changes.inserted[1].reference]
      )
      #expect(error.nsError.code == 133_021)
    }
    // A unique value may move from a deleted row to a new one in one save.
    changes = RowChanges()
    changes.deleted = [
      RowChanges.Deletion(
        reference: rain,
        layout: try world.table("Tag").layout,
        expectedVersion: 1
      )
    ]
    changes.inserted = [try world.insertion("Tag", ["name": .string("rain")])]
    _ = try world.store.commit(changes)
  }

  @Test("Keys are never reused, neither by two stores on one file nor after a restart")
  func keys() throws {
    let world = try SampleStore()
    let other = try SQLiteStore(model: SampleStore.model(), url: world.url, options: world.options)
    let post = try world.table("Post").layout.entity
    let image = try world.table("ImagePost").layout.entity
    var seen: Set<Int64> = []
    for round in 0..<40 {
      let store = round.isMultiple(of: 2) ? world.store : other
      let entity = try #require(
        store.schema.entity(named: round.isMultiple(of: 3) ? "Post" : "ImagePost")
      )
      for key in try store.reserveKeys(for: entity.layout.entity, count: round % 5 + 1) {
        #expect(seen.insert(key).inserted)
      }
    }
    other.close()
    try world.reopen()
    let next = try world.store.reserveKeys(for: post, count: 1).lowerBound
    #expect(!seen.contains(next))
    #expect(try world.store.reserveKeys(for: image, count: 1).lowerBound != next)
  }

  @Test("Unused keys of a reserved block are returned when the store is closed")
  func keysGoBack() throws {
    let world = try SampleStore()
    for _ in 0..<5 { _ = try world.insert("Post") }
    world.store.close()
    let plain = try SQLiteConnection(path: world.url.path, mode: .readOnly)
    #expect(
      try plain.scalar("SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_NAME = 'Post'") == .integer(5)
    )
  }

  @Test("Another process's commit is seen by the next fetch and the next save")
  func otherWriters() throws {
    let world = try SampleStore()
    let post = try world.insert("Post", ["title": .string("ours")])
    let stale = try world.update(post, ["title": .string("late")])
    let other = try SQLiteStore(model: SampleStore.model(), url: world.url, options: world.options)
    try other.write(author: "other") { transaction in
      try transaction.update(
        post,
        set: [try world.index("Post", "title"): .string("theirs")]
      )
    }
    guard
      case .rows(let rows) = try world.store.fetch(
        RowFetch(entity: try world.table("Post").layout.entity, kind: .rows)
      )
    else { return }
    #expect(rows.map { $0.values[0] }.isEmpty == false)
    var changes = RowChanges()
    changes.updated = [stale]
    #expect(throws: RowConflictError.self) { try world.store.commit(changes) }
    #expect(try world.value(post, "title") == .string("theirs"))
  }

  @Test("A store in memory behaves the same and leaves no file")
  func inMemory() throws {
    let folder = try ScratchFolder()
    let url = folder.file("nothing.sqlite")
    let store = try SQLiteStore(
      model: SampleStore.model(),
      url: url,
      type: NSInMemoryStoreType
    )
    let tag = try #require(store.schema.entity(named: "Tag"))
    let reference = try store.write(author: nil) {
      try $0.insert(tag.layout, values: [.string("rain")])
    }
    store.forget([reference])
    #expect(try store.row(reference).found?.values == [.string("rain")])
    #expect(store.type == NSInMemoryStoreType)
    #expect(!FileManager.default.fileExists(atPath: url.path))
  }

  @Test("Many threads read while one writes, and all rows of a read are of one save")
  func threads() async throws {
    let world = try SampleStore(options: [:])
    let store = world.store
    let table = try world.table("Post")
    let score = try world.index("Post", "score")
    let posts = try store.write(author: nil) { transaction in
      try (0..<50).map { _ in
        try transaction.insert(
          table.layout,
          values: try world.values("Post", ["score": .integer(0)])
        )
      }
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask {
        for round in 1...40 {
          try store.write(author: nil) { transaction in
            for post in posts {
              try transaction.update(post, set: [score: .integer(Int64(round))])
            }
          }
        }
      }
      for _ in 0..<3 {
        group.addTask {
          for _ in 0..<60 {
            guard
              case .rows(let rows) = try store.fetch(
                RowFetch(entity: table.layout.entity, kind: .rows)
              )
            else { return }
            #expect(Set(rows.map { $0.values[score] }).count == 1)
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try store.row(posts[0]).found?.values[score] == .integer(40))
  }
}
