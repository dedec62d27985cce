import Foundation
import OpenCoreData
import Testing

@Suite("Long lists and objects in predicates")
struct LongListTests {
  @Test("IN takes more members than a statement has parameters, of every type")
  func long() throws {
    let container = try FetchWorld.container(posts: 10)
    let context = container.newBackgroundContext()
    try context.performAndWait {
      func views(_ format: String, _ list: [Any]) throws -> [Int64] {
        let request = FetchWorld.request()
        request.predicate = NSPredicate(format: format, list)
        return try context.fetch(request).map(\.views)
      }
      let count = 40_000
      try #expect(views("views IN %@", Array(7..<(7 + count))) == [7, 8, 9])
      try #expect(views("NOT views IN %@", Array(2..<(2 + count))) == [0, 1])
      try #expect(views("title IN %@", (0..<count).map { "post 0\($0 + 8)" }) == [8, 9])
      #expect(
        try views(
          "date IN %@",
          (0..<count).map { Date(timeIntervalSinceReferenceDate: Double($0) + 9) }
        )
          == [9]
      )
      #expect(
        try views("score IN %@", (0..<count).map { Double($0) + 1.5 }) == [3, 7]
      )
      try #expect(
        views("author.name IN[c] %@", (0..<count).map { $0 == 5 ? "ADA" : "x\($0)" }).count == 5
      )
    }
  }

  @Test("Objects, identifiers and unsaved objects can be used in predicates")
  func objects() throws {
    let container = try FetchWorld.container(posts: 6)
    let context = container.newBackgroundContext()
    try context.performAndWait {
      let posts = try context.fetch(FetchWorld.request())
      let unsaved = WorldPost(context: context)
      unsaved.title = "unsaved"
      func titles(_ predicate: NSPredicate) throws -> [String] {
        let request = FetchWorld.request()
        request.predicate = predicate
        return try context.fetch(request).map(\.title)
      }
      try #expect(
        titles(NSPredicate(format: "SELF IN %@", [posts[1], posts[3]])) == ["post 01", "post 03"]
      )
      #expect(
        try titles(NSPredicate(format: "SELF IN %@", [posts[1].objectID, unsaved.objectID]))
          == ["post 01", "unsaved"]
      )
      try #expect(titles(NSPredicate(format: "SELF == %@", posts[2])) == ["post 02"])
      try #expect(titles(NSPredicate(format: "self == %@", unsaved)) == ["unsaved"])
      try #expect(titles(NSPredicate(format: "objectID == %@", posts[2].objectID)) == ["post 02"])
      let ada = try #require(posts[0].author)
      try #expect(titles(NSPredicate(format: "author == %@", ada)).count == 3)
      try #expect(titles(NSPredicate(format: "author != %@", ada)).count == 4)
      try #expect(titles(NSPredicate(format: "author IN %@", Set([ada]))).count == 3)
      let tag = try #require(posts[2].tags.first)
      try #expect(
        titles(NSPredicate(format: "ANY tags == %@", tag)) == ["post 00", "post 02", "post 04"]
      )
      try #expect(
        titles(NSPredicate(format: "%@ IN tags", tag)) == ["post 00", "post 02", "post 04"]
      )
      try #expect(titles(NSPredicate(format: "tags CONTAINS %@", tag)).count == 3)
      // A relationship to an object that no store has matches nothing there.
      let stranger = WorldAuthor(context: context)
      try #expect(titles(NSPredicate(format: "author == %@", stranger)).isEmpty)
      unsaved.author = stranger
      try #expect(titles(NSPredicate(format: "author == %@", stranger)) == ["unsaved"])
    }
  }
}
