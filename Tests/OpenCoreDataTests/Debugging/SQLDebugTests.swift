import Foundation
import OpenCoreData
import Testing

#if canImport(Glibc)
import Glibc
#endif

/// Each test runs in a process of its own, as the launch argument is read once.
@Suite("Logging SQL, with -com.apple.CoreData.SQLDebug")
struct SQLDebugTests {
  private static func work(_ level: String?) throws {
    if let level { setenv("com.apple.CoreData.SQLDebug", level, 1) }
    let context = try ItemModel.container().newBackgroundContext()
    try context.performAndWait {
      ItemModel.insert(code: "it's", count: 42, into: context)
      try context.save()
      let request = NSFetchRequest<NSManagedObject>(entityName: "Item")
      request.predicate = NSPredicate(format: "code == %@", "it's")
      _ = try context.fetch(request)
    }
  }

  private func lines(_ result: ExitTest.Result?) throws -> [Substring] {
    let text = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
    return text.split(separator: "\n").filter { $0.hasPrefix("CoreData: ") || $0.hasPrefix("\t") }
  }

  @Test("Level 1 prints statements and timings")
  func level1() async throws {
    let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      try Self.work("1")
    }
    let lines = try lines(result)
    #expect(lines.contains { $0.hasPrefix("CoreData: sql: INSERT INTO ZITEM") })
    #expect(lines.contains { $0.hasPrefix("CoreData: sql: SELECT ") && $0.contains("ZITEM") })
    #expect(lines.contains { $0.hasPrefix("CoreData: annotation: sql connection fetch time: ") })
    #expect(
      lines.contains {
        $0.hasPrefix("CoreData: annotation: total fetch execution time: ")
          && $0.hasSuffix(" for 1 rows.")
      }
    )
    #expect(!lines.contains { $0.contains("bind[") })
  }

  @Test("Level 3 prints the values as well")
  func level3() async throws {
    let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      try Self.work("3")
    }
    let lines = try lines(result)
    #expect(
      lines.contains { $0.hasPrefix("CoreData: details: SQLite bind[") && $0.hasSuffix("= 42") }
    )
    #expect(
      lines.contains {
        $0.hasPrefix("CoreData: details: SQLite bind[") && $0.hasSuffix("= 'it''s'")
      }
    )
    #expect(!lines.contains { $0.contains("EXPLAIN") })
  }

  @Test("Level 4 prints the query plans as well")
  func level4() async throws {
    let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      try Self.work("4")
    }
    let lines = try lines(result)
    #expect(lines.contains { $0.contains("EXPLAIN QUERY PLAN SELECT") })
    #expect(lines.contains { $0.hasPrefix("\t") && ($0.contains("SCAN") || $0.contains("SEARCH")) })
  }

  @Test("Without -com.apple.CoreData.SQLDebug no SQL is printed")
  func silent() async throws {
    let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      try Self.work(nil)
    }
    try #expect(!lines(result).contains { $0.hasPrefix("CoreData: sql:") })
  }
}
