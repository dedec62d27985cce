import CloudKitServer
import Foundation
import WatershedPostgreSQL
import WatershedSQLite

/// Writes the same rows as a service with handwritten statements, to measure the engine itself.
struct RawRows {
  /// Fields of one record as the service encodes them.
  let fields: Data
  let indexes: Int

  static let columns = """
    (partition, zone, name, type, tag, change, created_at, created_by, created_on, modified_at,
     modified_by, modified_on, fields, contents, deleted, entered, seen)
    """
  static let entryColumns = "(partition, zone, type, field, value, name)"

  /// The text columns of a record besides its name.
  private static let user = "_" + String(repeating: "0", count: 32)

  private func entryValue(_ name: String, _ field: Int) -> Data {
    Data([0x30]) + Data("\(field)\(name)".utf8.prefix(32))
  }

  // MARK: SQLite

  func writeSQLite(
    _ connection: SQLiteConnection,
    partition: Int64,
    change: Int64,
    names: [String]
  ) throws {
    try connection.transaction {
      let record = try connection.statement(
        "INSERT INTO records \(Self.columns) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
      )
      let entry = try connection.statement(
        "INSERT INTO index_entries \(Self.entryColumns) VALUES (?,?,?,?,?,?)"
      )
      for (offset, name) in names.enumerated() {
        let number = change + Int64(offset)
        try record.run([
          .integer(partition), .integer(1), .text(name), .text("Note"), .text("tag\(number)"),
          .integer(number), .integer(number), .text(Self.user), .text("2"), .integer(number),
          .text(Self.user), .text("2"), .blob(fields), .integer(0), .integer(0), .integer(0),
          .integer(0),
        ])
        for field in 0..<indexes {
          try entry.run([
            .integer(partition), .integer(1), .text("Note"), .text("field\(field)"),
            .blob(entryValue(name, field)), .text(name),
          ])
        }
      }
      try connection.run(
        "UPDATE databases SET counter = ? WHERE partition = ?",
        [.integer(change), .integer(partition)]
      )
    }
  }

  // MARK: PostgreSQL

  func writePostgreSQL(
    _ connection: PostgreSQLConnection,
    partition: Int64,
    change: Int64,
    names: [String]
  ) throws {
    try connection.transaction {
      let records = names.enumerated().flatMap { offset, name -> [PostgreSQLValue] in
        let number = change + Int64(offset)
        return [
          .integer(partition), .integer(1), .text(name), .text("Note"), .text("tag\(number)"),
          .integer(number), .integer(number), .text(Self.user), .text("2"), .integer(number),
          .text(Self.user), .text("2"), .bytes(fields), .integer(0), .integer(0), .integer(0),
          .integer(0),
        ]
      }
      try connection.queue(
        "INSERT INTO records \(Self.columns) VALUES \(Self.places(names.count, 17))",
        records
      )
      for field in 0..<indexes {
        let entries = names.flatMap { name -> [PostgreSQLValue] in
          [
            .integer(partition), .integer(1), .text("Note"), .text("field\(field)"),
            .bytes(entryValue(name, field)), .text(name),
          ]
        }
        try connection.queue(
          "INSERT INTO index_entries \(Self.entryColumns) VALUES \(Self.places(names.count, 6))",
          entries
        )
      }
      try connection.queue(
        "UPDATE databases SET counter = $1 WHERE partition = $2",
        [.integer(change), .integer(partition)]
      )
    }
  }

  private static func places(_ rows: Int, _ columns: Int) -> String {
    (0..<rows).map { row in
      "(" + (1...columns).map { "$\(row * columns + $0)" }.joined(separator: ",") + ")"
    }.joined(separator: ",")
  }
}
