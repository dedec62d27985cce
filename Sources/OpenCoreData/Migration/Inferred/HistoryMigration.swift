import Foundation
import WatershedSQLite

/// Converts the history to the new model: the entities' numbers, the bits of changed properties,
/// the tombstone columns.
///
/// Changes of removed entities are deleted.
struct HistoryMigration {
  private let migration: InPlaceMigration
  private let connection: SQLiteConnection
  private let pairs: [(former: EntityTable, current: EntityTable)]

  private static let function = "WatershedHistoryColumns"

  init(_ migration: InPlaceMigration, pairs: [(former: EntityTable, current: EntityTable)]) {
    self.migration = migration
    connection = migration.connection
    self.pairs = pairs
  }

  func run() throws {
    guard let columns = migration.file.columns["ACHANGE"] else { return }
    let stones = columns.filter { $0.hasPrefix("ZTOMBSTONE") }
    try moveBits()
    try moveTombstones(present: stones.count)
    let known = pairs.map { "\($0.former.number)" }.joined(separator: ", ")
    try connection.run(
      "DELETE FROM ACHANGE WHERE ZENTITY < \(ExistingTables.firstReservedNumber) "
        + "AND ZENTITY NOT IN (\(known))"
    )
    let cases = pairs.filter { $0.former.number != $0.current.number }
      .map { "WHEN \($0.former.number) THEN \($0.current.number)" }
    guard !cases.isEmpty else { return }
    try connection.run(
      "UPDATE ACHANGE SET ZENTITY = CASE ZENTITY \(cases.joined(separator: " ")) ELSE ZENTITY END"
    )
  }

  /// A bit is a property's index in the order of names, which a new property shifts.
  private func moveBits() throws {
    var changed: [Int64: (HistoryColumns, HistoryColumns, [String: String])] = [:]
    for (former, current) in pairs {
      var names: [String: String] = [:]
      for (name, former) in migration.difference.formerNames(in: current.layout.entity) {
        names[former] = name
      }
      guard former.history.places != current.history.places else { continue }
      changed[Int64(former.number)] = (former.history, current.history, names)
    }
    guard !changed.isEmpty else { return }
    try connection.register(function: Self.function, argumentCount: 2) { arguments in
      guard case .integer(let number) = arguments[0], case .blob(let bits) = arguments[1],
        let (former, current, names) = changed[number]
      else { return arguments[1] }
      return .blob(current.bits(names: former.names(in: bits).compactMap { names[$0] }))
    }
    let numbers = changed.keys.sorted().map(String.init).joined(separator: ", ")
    try connection.run(
      "UPDATE ACHANGE SET ZCOLUMNS = \(Self.function)(ZENTITY, ZCOLUMNS) "
        + "WHERE ZCOLUMNS IS NOT NULL AND ZENTITY IN (\(numbers))"
    )
  }

  private func moveTombstones(present: Int) throws {
    let needed = migration.destination.tombstoneCount
    for index in 0..<needed where index >= present {
      try connection.execute("ALTER TABLE ACHANGE ADD COLUMN ZTOMBSTONE\(index) BLOB")
    }
    for (former, current) in pairs {
      let before = former.history.preserved.map(\.name)
      let after = current.history.preserved.map { entry in
        migration.difference
          .source(ofPropertyNamed: entry.name, in: current.layout.entity)
          .flatMap { before.firstIndex(of: $0.name) }
      }
      let isSame = after == before.indices.map { Optional($0) }
      guard !isSame, !before.isEmpty else { continue }
      let terms = (0..<max(before.count, after.count)).map { index in
        let place = after.indices.contains(index) ? after[index] : nil
        return "ZTOMBSTONE\(index) = " + (place.map { "ZTOMBSTONE\($0)" } ?? "NULL")
      }
      try connection.run(
        "UPDATE ACHANGE SET \(terms.joined(separator: ", ")) "
          + "WHERE ZENTITY = \(former.number) AND ZCHANGETYPE = 2"
      )
    }
  }
}
