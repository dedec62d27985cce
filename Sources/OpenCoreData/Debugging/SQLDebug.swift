import Effects
import Foundation
import WatershedSQLite

/// Prints the statements of a connection for `-com.apple.CoreData.SQLDebug`.
enum SQLDebug {
  /// Called once for each connection of a store.
  static func watch(_ connection: SQLiteConnection) {
    let level = DebugOptions.sqlLevel
    guard level > 0 else { return }
    connection.trace { [weak connection] event in
      for line in lines(event, level, connection) { StandardError.print(line) }
    }
  }

  static func lines(
    _ event: SQLiteTraceEvent,
    _ level: Int,
    _ connection: SQLiteConnection?
  ) -> [String] {
    switch event {
    case .began(let sql, let expanded):
      var lines = ["CoreData: sql: \(sql)"]
      if level >= 3, let expanded = expanded() {
        for (index, value) in boundValues(sql, expanded).enumerated() {
          lines.append("CoreData: details: SQLite bind[\(index)] = \(value)")
        }
      }
      if level >= 4, isQuery(sql), let connection {
        lines.append("CoreData: details: SQLite: EXPLAIN QUERY PLAN \(sql)")
        lines += connection.queryPlan(of: sql).map { "\t\($0)" }
      }
      return lines
    case .ended(let sql, let seconds, let rows):
      let time = String(format: "%.4fs", seconds)
      guard isQuery(sql) else { return ["CoreData: annotation: sql execution time: \(time)"] }
      return [
        "CoreData: annotation: sql connection fetch time: \(time)",
        "CoreData: annotation: total fetch execution time: \(time) for \(rows) rows.",
      ]
    }
  }

  private static func isQuery(_ sql: String) -> Bool {
    sql.hasPrefix("SELECT") || sql.hasPrefix("WITH")
  }

  /// The values of a statement's parameters.
  ///
  /// SQLite does not expose bound values, but it returns the text with the values in place: both
  /// texts are compared.
  static func boundValues(_ sql: String, _ expanded: String) -> [String] {
    let template = Array(sql.utf8)
    let filled = Array(expanded.utf8)
    let quote = UInt8(ascii: "'")
    var values: [String] = []
    var index = 0
    var place = 0
    var isQuoted = false
    while index < template.count, place < filled.count {
      if isQuoted || template[index] != UInt8(ascii: "?") {
        if template[index] == quote { isQuoted.toggle() }
        index += 1
        place += 1
        continue
      }
      index += 1
      while index < template.count, isDigit(template[index]) { index += 1 }
      let start = place
      place = endOfLiteral(filled, from: place)
      values.append(String(decoding: filled[start..<place], as: UTF8.self))
    }
    return values
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (48...57).contains(byte) }

  /// Text and blobs are quoted, with doubled quotes; other literals end with the last character of
  /// a name or number.
  private static func endOfLiteral(_ text: [UInt8], from start: Int) -> Int {
    let quote = UInt8(ascii: "'")
    var place = start
    if place < text.count, text[place] == UInt8(ascii: "x") { place += 1 }
    if place < text.count, text[place] == quote {
      place += 1
      while place < text.count {
        if text[place] == quote {
          guard place + 1 < text.count, text[place + 1] == quote else { return place + 1 }
          place += 1
        }
        place += 1
      }
      return place
    }
    let others = Array("+-._".utf8)
    while place < text.count,
      isDigit(text[place]) || (65...90).contains(text[place] & 0xDF) || others.contains(text[place])
    {
      place += 1
    }
    return place
  }
}
