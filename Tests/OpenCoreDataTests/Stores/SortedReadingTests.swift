import OpenCoreData
import Testing

@Suite("Reading many rows at once")
struct SortedReadingTests {
  @Test(
    "Rows are returned in the requested order, and twice if requested twice"
  )
  func anyOrder() throws {
    let world = try SampleStore()
    let tags = try (0..<700).map { try world.insert("Tag", ["name": .string("tag \($0)")]) }
    let posts = try (0..<20).map { try world.insert("Post", ["title": .string("post \($0)")]) }
    var random = SeededNumbers(seed: 11)
    let missing = RowReference(entityNumber: tags[0].entityNumber, key: 1_000_000)
    // Dense, with gaps, scattered, of several entities, doubled, missing.
    let lists = [
      tags, Array(tags.reversed()), tags.filter { $0.key % 3 != 0 },
      tags.filter { $0.key % 97 == 0 },
      (tags + posts + tags.prefix(30) + [missing]).shuffled(using: &random), [missing], [],
    ]
    for references in lists {
      world.store.forget(tags + posts)
      let expected = references.map { $0 == missing ? nil : $0 }
      #expect(try world.store.rows(references, .cached).map { $0?.reference } == expected)
      world.store.forget(tags + posts)
      #expect(try world.store.rows(references, .uncached).map { $0?.reference } == expected)
      for reference in references { #expect(world.store.cachedRow(reference) == nil) }
      #expect(try world.store.rows(references, .cached).map { $0?.reference } == expected)
    }
  }

  @Test("Destinations of many sources equal those of each source alone")
  func destinations() throws {
    let world = try SampleStore()
    let tags = try (0..<5).map { try world.insert("Tag", ["name": .string("tag \($0)")]) }
    let posts = try (0..<150).map { _ in try world.insert("Post") }
    let postTags = try world.relationship("Post", "tags")
    let comments = try world.relationship("Post", "comments")
    var random = SeededNumbers(seed: 5)
    try world.store.write(author: nil) { transaction in
      for post in posts {
        for tag in tags where Bool.random(using: &random) {
          try transaction.addLink(postTags, post, tag)
        }
      }
    }
    for post in posts.shuffled(using: &random).prefix(60) {
      _ = try world.insert("Comment", ["post": .reference(post)])
    }
    let lists = [
      posts, Array(posts.reversed()), posts.filter { $0.key % 7 == 0 },
      (posts + posts.prefix(40)).shuffled(using: &random), [posts[4], posts[140]], [],
    ]
    for relationship in [postTags, comments] {
      let alone = try posts.reduce(into: [:]) { result, post in
        result[post] = try world.store.destinations(of: relationship, from: [post])[post] ?? []
      }
      for sources in lists {
        let found = try world.store.destinationLists(of: relationship, from: sources)
        #expect(
          sources.indices.map { Array(found.destinations(at: $0)) } == sources.map { alone[$0] }
        )
        for rows in [RowBringing.passing, .cached] {
          world.store.forget(alone.values.flatMap(\.self))
          let full = try world.store.destinationLists(
            of: relationship,
            from: sources,
            bringing: rows
          )
          #expect(
            sources.indices.map { Array(full.destinations(at: $0)) } == sources.map { alone[$0] }
          )
          // Comments refer to their posts themselves; tags use a join table.
          #expect(full.hasRows == (relationship === comments && !full.references.isEmpty))
          if full.hasRows {
            #expect(full.rows.map { $0?.reference } == full.references)
            #expect(
              full.references.allSatisfy {
                (world.store.cachedRow($0) != nil) == (rows == .cached)
              }
            )
          }
        }
        let keyed = try world.store.destinations(of: relationship, from: sources)
        #expect(Set(sources).allSatisfy { keyed[$0] ?? [] == alone[$0] })
      }
    }
  }
}
