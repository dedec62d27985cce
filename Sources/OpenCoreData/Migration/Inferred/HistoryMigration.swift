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
    let tombstones = TombstoneColumns(connection: connection)
    try tombstones.add(migration.destination.tombstoneCount, present: present)
    for (former, current) in pairs {
      try tombstones.move(former, current) { name in
        migration.difference.source(ofPropertyNamed: name, in: current.layout.entity)?.name
      }
    }
  }
}
