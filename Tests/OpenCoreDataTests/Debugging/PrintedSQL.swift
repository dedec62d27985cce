import Foundation
import Testing

/// The lines that the process of an exit test prints with `-com.apple.CoreData.SQLDebug 1` between two marks.
struct PrintedSQL {
  private static let mark = "the measured part"

  let lines: ArraySlice<Substring>

  /// Turns the option on; it is read at the first use of a store.
  static func turnOn() { setenv("com.apple.CoreData.SQLDebug", "1", 1) }

  static func printMark() { FileHandle.standardError.write(Data((mark + "\n").utf8)) }

  init(_ result: ExitTest.Result?) throws {
    let text = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
    lines = text.split(separator: "\n").drop { $0 != Self.mark }.dropFirst()
      .prefix { $0 != Self.mark }
  }

  /// The SELECT statements, and the rows that each found.
  var fetches: [(sql: Substring, rows: Int)] {
    var found: [(Substring, Int)] = []
    var last: Substring = ""
    for line in lines {
      if line.hasPrefix("CoreData: sql: SELECT") { last = line }
      guard line.hasPrefix("CoreData: annotation: total fetch"), line.hasSuffix(" rows.") else {
        continue
      }
      found.append((last, line.split(separator: " ").compactMap { Int($0) }.last ?? -1))
    }
    return found
  }
}
