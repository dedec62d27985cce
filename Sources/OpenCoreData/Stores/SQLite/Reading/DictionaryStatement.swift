import Foundation
import WatershedSQLite

/// Writes the SELECT of a fetch of dictionaries and reads its result.
struct DictionaryStatement {
  /// One column of the result.
  struct Column {
    var name: String
    var form: Form

    enum Form {
      case stored(SlotColumn.Form, NSAttributeType)
      case expression(NSAttributeType, SQLValueKind)
      /// The key of a row; its entity is in the next result column where it is not constant.
      case reference(constant: Int32?)
    }
  }

  let sql: SQLFragment
  private let columns: [Column]
  private let coding: RowCoding

  init(_ statement: FetchStatement, shape: RowFetch.DictionaryShape) throws {
    coding = statement.store.coding
    var writer = statement.makeWriter(aggregates: true)
    var columns: [Column] = []
    var terms: [SQLFragment] = []
    for property in shape.properties {
      let (column, fragments, term) = try Self.column(property, statement, writer)
      columns.append(column)
      if property is NSExpressionDescription, let term { writer.named[property.name] = term }
      terms += fragments
    }
    let condition = try statement.condition(writer)
    var groups: [SQLFragment] = []
    for property in shape.groupBy {
      groups += try Self.column(property, statement, writer).1
    }
    var tail = SQLFragment("")
    if !groups.isEmpty { tail = " GROUP BY " + groups.joined(separator: ", ") }
    if let having = shape.having { tail = tail + " HAVING " + (try writer.condition(having)) }
    if !statement.request.sortDescriptors.isEmpty {
      tail =
        tail + " ORDER BY "
        + (try writer.order(by: statement.request.sortDescriptors))
    }
    let head =
      SQLFragment(shape.isDistinct ? "SELECT DISTINCT " : "SELECT ")
      + terms.joined(separator: ", ")
    let source = SQLFragment(" FROM \(statement.entity.table) AS t0\(writer.joins)")
    sql = head + source + condition + tail + statement.limit
    self.columns = columns
  }

  /// One result as a dictionary; an attribute that is nil has no key.
  ///
  /// To-ones and object identifiers are returned as ``RowReference``, which the coordinator turns
  /// into object IDs.
  func dictionary(_ statement: SQLiteStatement) throws -> [String: Any] {
    var result: [String: Any] = [:]
    var position = 0
    for column in columns {
      defer { position += 1 }
      let value = statement.value(position)
      switch column.form {
      case .stored(let form, let type):
        result[column.name] = Self.keyValue(try Self.stored(value, form, coding), type)
      case .expression(let type, let kind):
        result[column.name] = Self.keyValue(Self.computed(value, type, kind), type)
      case .reference(let constant):
        var entity = constant
        if entity == nil {
          position += 1
          entity = Int32(truncatingIfNeeded: statement.int64(position))
        }
        if case .integer(let key) = value, let entity {
          result[column.name] = RowReference(entityNumber: entity, key: key)
        }
      }
    }
    return result
  }

  // MARK: Columns

  private static func column(
    _ property: NSPropertyDescription,
    _ statement: FetchStatement,
    _ writer: PredicateSQLWriter
  ) throws -> (Column, [SQLFragment], SQLTerm?) {
    if let expression = property as? NSExpressionDescription {
      return try column(expression, statement, writer)
    }
    let entity = statement.entity
    switch entity.layout.slot(named: property.name) {
    case .attribute(let index) where entity.columns[index].isStored:
      let slot = entity.columns[index]
      return (
        Column(
          name: property.name,
          form: .stored(slot.form, entity.layout.attributes[index].type)
        ),
        [SQLFragment("t0.\(slot.name)")], nil
      )
    case .toOne(let index):
      let slot = entity.columns[entity.layout.attributes.count + index]
      let name = property.name
      switch slot.form {
      case .key(let number):
        let fragment = SQLFragment("t0.\(slot.name)")
        return (Column(name: name, form: .reference(constant: number)), [fragment], nil)
      case .keyAndEntity(let companion, let isColumn):
        let fragments = [
          SQLFragment("t0.\(slot.name)"),
          SQLFragment(isColumn ? "t0.\(companion)" : companion),
        ]
        return (Column(name: name, form: .reference(constant: nil)), fragments, nil)
      default: break
      }
    default: break
    }
    throw StoreError(
      .coreData,
      "The property \(property.name) of \(entity.name) has no column to fetch.",
      remedy: "Fetch attributes and to-one relationships that are stored."
    )
  }

  private static func column(
    _ property: NSExpressionDescription,
    _ statement: FetchStatement,
    _ writer: PredicateSQLWriter
  ) throws -> (Column, [SQLFragment], SQLTerm?) {
    // As in Core Data, the value of a description that sets only its name is nil.
    let expression = property.expression ?? NSExpression(forConstantValue: nil)
    let term = try writer.value(expression)
    let (fragment, kind) = (term.fragment, term.kind)
    var type = property.expressionResultType
    if type == .undefinedAttributeType, term.isDecimal { type = .decimalAttributeType }
    let entity = statement.entity
    if case .object(let table) = kind {
      let destination = statement.store.schema.entities.first {
        $0.table == table && $0.superNumber == 0
      }
      if let destination, !destination.hasSubentities {
        return (
          Column(name: property.name, form: .reference(constant: destination.number)),
          [fragment], term
        )
      }
      let number =
        fragment.sql == "t0.Z_PK" && table == entity.table
        ? SQLFragment("t0.Z_ENT")
        : "(SELECT e.Z_ENT FROM \(table) AS e WHERE e.Z_PK = " + fragment + ")"
      return (
        Column(name: property.name, form: .reference(constant: nil)), [fragment, number], term
      )
    }
    return (
      Column(name: property.name, form: .expression(type, kind)),
      [fragment], term
    )
  }

  // MARK: Values

  static func stored(
    _ value: SQLiteValue,
    _ form: SlotColumn.Form,
    _ coding: RowCoding
  ) throws -> RowValue {
    switch (form, value) {
    case (_, .null): .null
    case (.decimal, _): RowCoding.decimal(value)
    case (.uuid, _): RowCoding.uuid(value)
    case (.url, .text(let text)): RowCoding.url(text)
    case (.date, .real(let seconds)): .date(seconds)
    case (.date, .integer(let seconds)): .date(Double(seconds))
    case (.double, .integer(let number)): .double(Double(number))
    case (.externalData, .blob(let data)):
      try coding.external.read(data).map(RowValue.data) ?? .null
    default: plain(value)
    }
  }

  private static func computed(
    _ value: SQLiteValue,
    _ type: NSAttributeType,
    _ kind: SQLValueKind
  ) -> RowValue {
    switch (type, kind, value) {
    case (_, _, .null): .null
    case (.decimalAttributeType, _, _): RowCoding.decimal(value)
    case (.UUIDAttributeType, _, _): RowCoding.uuid(value)
    case (.URIAttributeType, _, .text(let text)): RowCoding.url(text)
    case (.dateAttributeType, _, .real(let seconds)),
      (.undefinedAttributeType, .date, .real(let seconds)):
      .date(seconds)
    case (.dateAttributeType, _, .integer(let seconds)),
      (.undefinedAttributeType, .date, .integer(let seconds)):
      .date(Double(seconds))
    // A decimal that no double can represent.
    case (.doubleAttributeType, .number, .text(let text)),
      (.floatAttributeType, .number, .text(let text)):
      .double(Double(text.replacing("m", with: "")) ?? 0)
    case (.integer16AttributeType, .number, .text(let text)),
      (.integer32AttributeType, .number, .text(let text)),
      (.integer64AttributeType, .number, .text(let text)):
      .integer(
        Int64(exactly: (Double(text.replacing("m", with: "")) ?? 0).rounded(.towardZero)) ?? 0
      )
    case (.doubleAttributeType, _, .integer(let number)),
      (.floatAttributeType, _, .integer(let number)):
      .double(Double(number))
    case (.booleanAttributeType, _, .real(let number)): .integer(number == 0 ? 0 : 1)
    case (.integer16AttributeType, _, .real(let number)),
      (.integer32AttributeType, _, .real(let number)),
      (.integer64AttributeType, _, .real(let number)):
      .integer(Int64(exactly: number.rounded(.towardZero)) ?? 0)
    default: plain(value)
    }
  }

  private static func plain(_ value: SQLiteValue) -> RowValue {
    switch value {
    case .null: .null
    case .integer(let value): .integer(value)
    case .real(let value): .double(value)
    case .text(let value): .string(value)
    case .blob(let value): .data(value)
    }
  }

  static func keyValue(_ value: RowValue, _ type: NSAttributeType) -> Any? {
    switch value {
    case .null: nil
    case .integer(let value):
      type == .booleanAttributeType ? NSNumber(value: value != 0) : NSNumber(value: value)
    case .double(let value): NSNumber(value: value)
    case .date(let seconds): Date(timeIntervalSinceReferenceDate: seconds)
    case .decimal(let value): NSDecimalNumber(decimal: value.value)
    case .string(let value): value
    case .data(let value): value
    case .uuid(let value): value
    case .url(let value): value
    case .reference(let value): value
    }
  }
}
