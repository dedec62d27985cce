import Foundation
import OpenCoreData
import Testing

@Suite("Swift predicates, sort descriptors and key paths")
struct SwiftPredicateTests {
  /// The titles that the predicate finds in the store, which must equal those found in memory.
  private func titles(_ predicate: Predicate<WorldPost>) throws -> [String] {
    let container = try FetchWorld.container(posts: 12)
    let context = container.newBackgroundContext()
    return try context.performAndWait {
      let request = FetchWorld.request()
      let all = try context.fetch(request)
      let converted = try #require(NSPredicate(predicate))
      request.predicate = converted
      let found = try context.fetch(request)
      #expect(found == all.filter { converted.evaluate(with: $0) })
      return found.map { String($0.title.dropFirst(5)) }
    }
  }

  @Test("Comparisons, logic and arithmetic are converted")
  func comparisons() throws {
    let wanted = "post 03"
    #expect(try titles(#Predicate { $0.title == wanted }) == ["03"])
    #expect(try titles(#Predicate { $0.views > 9 || $0.views < 1 }) == ["00", "10", "11"])
    #expect(try titles(#Predicate { $0.views >= 2 && !($0.views != 2) }) == ["02"])
    #expect(try titles(#Predicate { $0.views * 2 + 1 == 9 }) == ["04"])
    #expect(try titles(#Predicate { $0.views % 6 == 5 }) == ["05", "11"])
    #expect(try titles(#Predicate { ($0.isDraft ? 1 : 2) == 1 }) == ["00", "05", "10"])
    #expect(try titles(#Predicate { (3...4).contains($0.views) }) == ["03", "04"])
  }

  @Test("A Boolean property is converted to a predicate")
  func booleans() throws {
    #expect(try titles(#Predicate { $0.isDraft }) == ["00", "05", "10"])
    #expect(try titles(#Predicate { $0.isDraft == true && $0.isPinned == false }).count == 0)
    #expect(try titles(#Predicate { !$0.isDraft && $0.views < 3 }) == ["01", "02"])
  }

  @Test("Operations on strings are converted")
  func texts() throws {
    #expect(try titles(#Predicate { $0.title.starts(with: "post 1") }) == ["10", "11"])
    #expect(try titles(#Predicate { $0.title.contains("t 1") }) == ["10", "11"])
    #expect(try titles(#Predicate { $0.title.localizedStandardContains("POST 11") }) == ["11"])
    #expect(try titles(#Predicate { $0.title.count == 7 && $0.views == 1 }) == ["01"])
    #expect(try titles(#Predicate { !$0.title.isEmpty && $0.views == 1 }) == ["01"])
  }

  @Test("Optionals and to-one relationships that may be nil are converted")
  func optionals() throws {
    #expect(try titles(#Predicate { $0.subtitle == nil }).count == 12)
    #expect(try titles(#Predicate { ($0.subtitle ?? "x") == "x" }).count == 12)
    #expect(try titles(#Predicate { $0.subtitle?.starts(with: "a") == true }).isEmpty)
    #expect(try titles(#Predicate { $0.author?.name == "Bob" && $0.views < 4 }) == ["01", "03"])
    #expect(
      try titles(#Predicate { if let date = $0.date { date > limit } else { false } }) == ["11"]
    )
  }

  private var limit: Date { Date(timeIntervalSinceReferenceDate: 10) }

  @Test("Operations on collections of objects are converted")
  func collections() throws {
    #expect(try titles(#Predicate { $0.tags.count == 2 }) == ["00", "06"])
    #expect(try titles(#Predicate { $0.tags.isEmpty }) == ["01", "05", "07", "11"])
    #expect(
      try titles(#Predicate { post in post.tags.contains { $0.name == "third" } })
        == ["00", "03", "06", "09"]
    )
    #expect(
      try titles(#Predicate { post in post.tags.allSatisfy { $0.rank > 1 } && post.views < 4 })
        == ["01", "03"]
    )
    #expect(
      try titles(#Predicate { post in post.tags.filter { $0.rank == 1 }.count == 1 }).count == 6
    )
    let some: [Int64] = [1, 4, 99]
    #expect(try titles(#Predicate { some.contains($0.views) }) == ["01", "04"])
  }

  @Test("Operations without an NSPredicate equivalent return nil")
  func unsupported() throws {
    _ = try FetchWorld.container()
    #expect(NSPredicate(#Predicate<WorldPost> { $0.shout == "A" }) == nil)
  }

  @Test("A key path sorts by the property that its getter reads, nil first")
  func keyPaths() throws {
    let container = try FetchWorld.container(posts: 4)
    let context = container.newBackgroundContext()
    try context.performAndWait {
      let request = FetchWorld.request()
      try context.fetch(request)[2].subtitle = "x"
      try context.fetch(request)[1].subtitle = "y"
      try context.save()
      request.sortDescriptors = [
        NSSortDescriptor(keyPath: \WorldPost.subtitle, ascending: true),
        NSSortDescriptor(keyPath: \WorldPost.views, ascending: false),
      ]
      try #expect(context.fetch(request).map(\.views) == [3, 0, 2, 1])
      request.sortDescriptors = [
        NSSortDescriptor(keyPath: \WorldPost.author?.name, ascending: false),
        NSSortDescriptor(keyPath: \WorldPost.title, ascending: true),
      ]
      try #expect(context.fetch(request).map(\.views) == [1, 3, 0, 2])
    }
  }

  @Test("Key paths have the names of the model's properties")
  func names() throws {
    _ = try FetchWorld.container()
    func key<Value>(_ keyPath: KeyPath<WorldPost, Value>) -> String? {
      NSSortDescriptor(keyPath: keyPath, ascending: true).key
    }
    #expect(key(\.title) == "title")
    #expect(key(\.views) == "views")
    #expect(key(\.score) == "score")
    #expect(key(\.date) == "date")
    #expect(key(\.isDraft) == "isDraft")
    #expect(key(\.isPinned) == "isPinned")
    #expect(key(\.author) == "author")
    #expect(key(\.author?.name) == "author.name")
    #expect(key(\.tags) == "tags")
    #expect(key(\.shout) == nil)
    #expect(NSSortDescriptor(keyPath: \WorldTag.rank, ascending: true).key == "rank")
    #expect(NSSortDescriptor(keyPath: \WorldPhotoPost.title, ascending: true).key == "title")
  }

  @Test("A SortDescriptor becomes an NSSortDescriptor, and strings are sorted by locale")
  func sortDescriptors() throws {
    _ = try FetchWorld.container()
    let byViews = NSSortDescriptor(SortDescriptor(\WorldPost.views, order: .reverse))
    #expect(byViews.key == "views")
    #expect(!byViews.ascending)
    let byTitle = NSSortDescriptor(SortDescriptor(\WorldPost.title))
    #expect(
      byTitle == NSSortDescriptor(key: "title", ascending: true, ordering: .localizedStandard)
    )
    let lexical = NSSortDescriptor(SortDescriptor(\WorldPost.title, comparator: .lexical))
    #expect(lexical == NSSortDescriptor(key: "title", ascending: true))
  }

  @Test("A key path with a comparator sorts in memory, and stores refuse it")
  func comparators() async throws {
    let descriptor = NSSortDescriptor(
      keyPath: \WorldPost.title,
      ascending: true,
      comparator: { left, right in
        let (left, right) = ("\(left)", "\(right)")
        return left > right ? .orderedAscending : left < right ? .orderedDescending : .orderedSame
      }
    )
    let container = try FetchWorld.container(posts: 3)
    let context = container.newBackgroundContext()
    try context.performAndWait {
      let posts = try context.fetch(FetchWorld.request())
      #expect(
        (NSArray(array: posts).sortedArray(using: [descriptor]) as? [WorldPost])?[0].views == 2
      )
    }
    let result = try await #require(
      processExitsWith: .failure,
      observing: [\.standardErrorContent]
    ) {
      let container = try FetchWorld.container(posts: 1)
      let context = container.newBackgroundContext()
      context.performAndWait {
        let request = FetchWorld.request()
        request.sortDescriptors = [
          NSSortDescriptor(key: "title", ascending: true) { _, _ in .orderedSame }
        ]
        _ = try? context.fetch(request)
      }
    }
    let message = String(decoding: result.standardErrorContent, as: UTF8.self)
    #expect(
      message.contains("unsupported NSSortDescriptor (comparator blocks are not supported)"),
      "\(message)"
    )
  }
}
