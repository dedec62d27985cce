import Foundation
import WatershedSQLite

extension SQLiteStore {
  /// Changes the rows that a fetch finds, in one transaction; returns them in order.
  func updateBatch(
    _ fetch: RowFetch,
    _ assignments: [BatchAssignment],
    author: String?,
    contextName: String?
  ) throws -> [RowReference] {
    guard !assignments.isEmpty else { return [] }
    return try batch(author: author, contextName: contextName) { writer in
      try BatchUpdate(store: self, writer: writer, fetch: fetch, assignments: assignments).run()
    }
  }
}

/// Changes columns of many rows with one UPDATE over the keys that a fetch found.
struct BatchUpdate {
  private let store: SQLiteStore
  private let writer: RowWriter
  private let statement: FetchStatement
  private let assignments: [BatchAssignment]

  init(
    store: SQLiteStore,
    writer: RowWriter,
    fetch: RowFetch,
    assignments: [BatchAssignment]
  ) throws {
    self.store = store
    self.writer = writer
    self.assignments = assignments
    statement = try FetchStatement(store: store, request: fetch)
  }

  private var entity: EntityTable { statement.entity }

  func run() throws -> [RowReference] {
    do {
      let keys = try BatchKeys(writer.connection)
      try keys.insert(root: entity.rootNumber, statement.references())
      let run = try keys.runs(.update) { number in
        store.schema.entity(number: number)?.history.bits(
          changed: assignments.map(\.slot.index),
          changedToManys: []
        )
      }
      try update()
      try replaceFiles(run.references)
      try derive(run.references)
      writer.append(run)
      return run.references
    } catch let error as PredicateNotTranslatable {
      throw StoreError(
        .coreData,
        error.reason,
        remedy: "Use stored properties in the predicate and in the new values.",
        cause: error
      )
    } catch let error as SQLiteError where error.isConstraint {
      throw StoreError(
        .constraintMerge,
        "The batch update of \(entity.name) would give several objects values that must be "
          + "unique: \(error.message).",
        remedy: "Change the values or the predicate.",
        cause: error
      )
    }
  }

  // MARK: Columns

  private func update() throws {
    let sqlWriter = statement.makeWriter(aggregates: false)
    var terms: [(column: String, value: SQLFragment)] = []
    var checks: [(slot: AttributeSlot, check: Check)] = []
    for assignment in assignments {
      let column = entity.columns[assignment.slot.index]
      switch assignment.value {
      case .constant(let value):
        // A file belongs to one row, so each row gets its own later.
        guard column.form != .externalData else { continue }
        terms.append((column.name, SQLFragment("?", [value])))
      case .expression(let expression):
        let value = try value(expression, assignment.slot, column, sqlWriter)
        terms.append((column.name, value.fragment))
        checks += value.checks.map { (assignment.slot, $0) }
      }
    }
    let table = entity.table
    let joins = sqlWriter.joins
    for (slot, check) in checks { try require(check, of: slot, joins: "\(joins)") }
    // The parts of an expression that read other tables are evaluated for each row.
    let assigned = terms.map { term in
      joins.isEmpty || term.value.sql == "?"
        ? "\(term.column) = " + term.value
        : "\(term.column) = (SELECT " + term.value
          + " FROM \(table) AS t0\(joins) WHERE t0.Z_PK = u.Z_PK)"
    }
    let sql =
      "UPDATE \(table) AS \(joins.isEmpty ? "t0" : "u") SET "
      + (assigned + [SQLFragment("Z_OPT = IFNULL(Z_OPT, 0) + 1")]).joined(separator: ", ")
      + " WHERE Z_PK IN (SELECT PK FROM \(BatchKeys.table))"
    let statement = try writer.connection.makeStatement(sql.sql)
    for (index, value) in sql.bindings.enumerated() {
      RowCoding.bind(value, to: statement, at: index + 1)
    }
    try statement.run()
  }

  /// A condition that no row may meet before it is updated.
  private struct Check {
    let violation: SQLFragment
    let code: Int
    let sentence: String
  }

  /// Fails the request where an expression's value in any row cannot be one of the attribute: no
  /// context could save such an object, or it would read another value than predicates find.
  private func require(_ check: Check, of slot: AttributeSlot, joins: String) throws {
    let sql =
      "SELECT 1 FROM \(entity.table) AS t0\(joins) WHERE t0.Z_PK IN "
      + "(SELECT PK FROM \(BatchKeys.table)) AND (" + check.violation + ") LIMIT 1"
    let statement = try writer.connection.makeStatement(sql.sql)
    for (index, value) in sql.bindings.enumerated() {
      RowCoding.bind(value, to: statement, at: index + 1)
    }
    defer { statement.reset() }
    guard try statement.step() else { return }
    throw CoreDataError.make(
      check.code,
      "The batch update of \(entity.name) would give an object \(check.sentence) of the attribute "
        + "'\(slot.name)'.",
      [NSValidationKeyErrorKey: slot.name]
    )
  }

  /// The expression in the storage class of the column, and what to check of it.
  private func value(
    _ expression: NSExpression,
    _ slot: AttributeSlot,
    _ column: SlotColumn,
    _ writer: PredicateSQLWriter
  ) throws -> (fragment: SQLFragment, checks: [Check]) {
    let term = try writer.value(expression)
    let (fragment, kind) = (term.fragment, term.kind)
    let fits: Bool
    switch (column.form, kind) {
    case (_, .null): fits = true
    case (.integer, .number), (.double, .number), (.decimal, .number): fits = true
    case (.date, .date), (.date, .number), (.double, .date): fits = true
    case (.string, .text), (.url, .text), (.uuid, .data), (.data, .data): fits = true
    default: fits = false
    }
    guard fits else {
      throw PredicateNotTranslatable(
        reason: "The expression \(expression) does not give values for the attribute in "
          + "the column \(column.name)."
      )
    }
    var checks: [Check] = []
    if !slot.isOptional {
      checks.append(
        Check(
          violation: "(" + fragment + ") IS NULL",
          code: NSValidationMissingMandatoryPropertyError,
          sentence: "no value"
        )
      )
    }
    if kind != .number || column.form != .integer && slot.type != .floatAttributeType {
      return (fragment, checks)
    }
    if slot.type == .booleanAttributeType { return ("((" + fragment + ") <> 0)", checks) }
    for (bound, code) in Self.bounds(of: slot.type) {
      checks.append(
        Check(
          violation: "(" + fragment + ") \(bound)",
          code: code,
          sentence: "a number beyond the type"
        )
      )
    }
    guard column.form == .integer else {
      // A save writes the nearest number of the type.
      try registerNearestFloat()
      return ("\(Self.nearestFloat)(" + fragment + ")", checks)
    }
    return ("CAST(" + fragment + " AS INTEGER)", checks)
  }

  /// `(value)`: the nearest number of the type Float.
  private static let nearestFloat = "WatershedNearestFloat"

  private func registerNearestFloat() throws {
    try writer.connection.register(function: Self.nearestFloat, argumentCount: 1) { arguments in
      switch arguments[0] {
      case .real(let number): .real(Double(Float(number)))
      case .integer(let number): .real(Double(Float(number)))
      case .text, .blob, .null: .null
      }
    }
  }

  /// The comparisons that hold for numbers outside a type's range; fractions of whole numbers are cut off.
  private static func bounds(of type: NSAttributeType) -> [(comparison: String, code: Int)] {
    let (least, most) =
      switch type {
      case .integer16AttributeType: ("<= -32769.0", ">= 32768.0")
      case .integer32AttributeType: ("<= -2147483649.0", ">= 2147483648.0")
      // From here on the nearest number is infinite: the greatest one and half of its last place.
      case .floatAttributeType: ("<= -3.4028235677973366e38", ">= 3.4028235677973366e38")
      // The doubles next to the bounds.
      default: ("< -9223372036854775808.0", ">= 9223372036854775808.0")
      }
    return [
      (least, NSValidationNumberTooSmallError), (most, NSValidationNumberTooLargeError),
    ]
  }

  // MARK: Values that SQL cannot compute

  private func replaceFiles(_ references: [RowReference]) throws {
    for assignment in assignments {
      let column = entity.columns[assignment.slot.index]
      guard column.form == .externalData, case .constant(let value) = assignment.value else {
        continue
      }
      let replace = try writer.connection.makeStatement(
        "UPDATE \(entity.table) SET \(column.name) = ? WHERE Z_PK = ?"
      )
      for reference in references {
        let stored = try writer.connection.scalar(
          "SELECT \(column.name) FROM \(entity.table) WHERE Z_PK = ?",
          [.integer(reference.key)]
        )
        if case .blob(let data)? = stored { writer.abandon(data) }
        try writer.bind(value, column, to: replace, at: 1)
        replace.bind(reference.key, at: 2)
        try replace.run()
      }
    }
  }

  /// Computes the attributes that a save derives from the object itself.
  private func derive(_ references: [RowReference]) throws {
    for reference in references {
      let table = try store.table(of: reference)
      guard !table.derivations.isEmpty,
        let row = try store.readRow(reference, from: writer.writer)
      else { continue }
      var values = row.values
      table.derivations.apply(to: &values, now: writer.now)
      for slot in table.derivations.targets where values[slot] != row.values[slot] {
        try writer.connection.run(
          "UPDATE \(table.table) SET \(table.columns[slot].name) = ? WHERE Z_PK = ?",
          [RowCoding.sqlite(values[slot]), .integer(reference.key)]
        )
      }
    }
  }
}
