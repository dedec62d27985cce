import Foundation
import WatershedSQLite

/// Reads rows out of a statement's columns and binds them to its parameters.
///
/// A class, because it is passed on for each row: a copy of a structure would retain every
/// reference inside.
final class RowCoding: Sendable {
  let external: ExternalData

  init(external: ExternalData) {
    self.external = external
  }

  // MARK: Reading

  /// Makes the row at which a statement of the plan stands; nil for an entity that is not in the
  /// model.
  func row(
    _ statement: SQLiteStatement,
    _ plan: ReadPlan,
    _ builder: RowBuilder
  ) throws -> Row? {
    let key = statement.int64(0)
    let number: Int32
    if let single = plan.single {
      number = single.number
      try read(statement, single.steps, builder)
    } else {
      number = Int32(truncatingIfNeeded: statement.int64(1))
      guard let steps = plan.steps[number] else { return nil }
      try read(statement, steps, builder)
    }
    return builder.row(
      reference: RowReference(entityNumber: number, key: key),
      version: statement.int64(2)
    )
  }

  @inline(__always)
  private func read(
    _ statement: SQLiteStatement,
    _ steps: [ReadPlan.Step],
    _ builder: RowBuilder
  ) throws {
    builder.begin(steps.count)
    for index in steps.indices { try read(statement, steps[index], builder) }
  }

  /// Only for a zero is the column's type checked: SQLite returns NULL as zero, and as no text.
  @inline(__always)
  private func read(
    _ statement: SQLiteStatement,
    _ step: ReadPlan.Step,
    _ builder: RowBuilder
  ) throws {
    let position = step.position
    switch step.form {
    case .none: builder.null()
    case .integer:
      let value = statement.int64(position)
      if value == 0, statement.columnIsNull(position) { return builder.null() }
      builder.integer(value)
    case .double:
      let value = statement.double(position)
      if value == 0, statement.columnIsNull(position) { return builder.null() }
      builder.double(value)
    case .date:
      let value = statement.double(position)
      if value == 0, statement.columnIsNull(position) { return builder.null() }
      builder.date(value)
    case .string:
      guard let bytes = statement.textBytes(position) else { return builder.null() }
      if bytes.count <= RowBuilder.inlineLimit {
        builder.append(bytes, as: .string)
      } else {
        builder.box(.string(String(decoding: bytes, as: UTF8.self)), byteCount: bytes.count)
      }
    case .key(let number):
      let key = statement.int64(position)
      if key == 0, statement.columnIsNull(position) { return builder.null() }
      builder.reference(entityNumber: number, key: key)
    default:
      try readRare(statement, step, builder)
    }
  }

  @inline(never)
  private func readRare(
    _ statement: SQLiteStatement,
    _ step: ReadPlan.Step,
    _ builder: RowBuilder
  ) throws {
    let position = step.position
    if statement.columnIsNull(position) { return builder.null() }
    switch step.form {
    case .data:
      let bytes = statement.blobBytes(position)
      if bytes.count <= RowBuilder.inlineLimit {
        builder.append(bytes, as: .data)
      } else {
        builder.box(.data(Data(bytes)), byteCount: bytes.count)
      }
    case .keyAndEntity(let entityPosition):
      guard !statement.columnIsNull(entityPosition) else { return builder.null() }
      builder.reference(
        entityNumber: Int32(truncatingIfNeeded: statement.int64(entityPosition)),
        key: statement.int64(position)
      )
    case .decimal: builder.value(Self.decimal(statement.value(position)))
    case .url: builder.value(Self.url(statement.text(position)))
    case .uuid: builder.value(Self.uuid(statement.value(position)))
    case .externalData:
      switch try external.contents(
        statement.blob(position),
        requiringFile: builder.requiresFiles
      ) {
      case .data(let data): builder.value(.data(data))
      case .file(let file): builder.box(file)
      case nil: builder.null()
      }
    case .none, .integer, .double, .date, .string, .key: builder.null()
    }
  }

  static func decimal(_ value: SQLiteValue) -> RowValue {
    switch value {
    case .integer(let value): .decimal(RowDecimal(Decimal(value)))
    case .real(let value):
      .decimal(RowDecimal(Decimal(nearest: value)))
    case .text(let text):
      .decimal(
        RowDecimal(Decimal(string: text.replacing("m", with: ""), locale: posix) ?? .nan)
      )
    case .blob, .null: .null
    }
  }

  static func url(_ text: String) -> RowValue {
    if let url = URL(string: text) { return .url(url) }
    let allowed = CharacterSet.urlQueryAllowed.union(.urlPathAllowed)
    return text.addingPercentEncoding(withAllowedCharacters: allowed)
      .flatMap(URL.init(string:)).map(RowValue.url) ?? .null
  }

  static func uuid(_ value: SQLiteValue) -> RowValue {
    switch value {
    case .blob(let data) where data.count == 16:
      let bytes = [UInt8](data)
      return .uuid(
        UUID(
          uuid: (
            bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7],
            bytes[8], bytes[9], bytes[10], bytes[11], bytes[12], bytes[13], bytes[14], bytes[15]
          )
        )
      )
    case .text(let text): return UUID(uuidString: text).map(RowValue.uuid) ?? .null
    default: return .null
    }
  }

  private static let posix = Locale(identifier: "en_US_POSIX")

  // MARK: Writing

  /// Binds a value to its column, and to the column that goes with it where it has one.
  ///
  /// Returns the next index.
  func bind(
    _ value: RowValue,
    _ column: SlotColumn,
    to statement: SQLiteStatement,
    at index: Int,
    files: inout ExternalData.Pending
  ) throws -> Int {
    if case .keyAndEntity(_, let isColumn) = column.form {
      if case .reference(let reference) = value {
        statement.bind(reference.key, at: index)
        if isColumn { statement.bind(Int64(reference.entityNumber), at: index + 1) }
      } else {
        statement.bindNull(at: index)
        if isColumn { statement.bindNull(at: index + 1) }
      }
      return isColumn ? index + 2 : index + 1
    }
    if column.form == .externalData, case .data(let data) = value {
      statement.bind(try external.stored(data, files: &files), at: index)
    } else {
      Self.bind(value, to: statement, at: index)
    }
    return index + 1
  }

  /// Binds one value.
  @inline(__always)
  static func bind(_ value: RowValue, to statement: SQLiteStatement, at index: Int) {
    switch value {
    case .null: statement.bindNull(at: index)
    case .integer(let value): statement.bind(value, at: index)
    case .double(let value), .date(let value): statement.bind(value, at: index)
    case .string(let value): statement.bind(value, at: index)
    case .data(let value): statement.bind(value, at: index)
    case .reference(let value): statement.bind(value.key, at: index)
    case .decimal, .uuid, .url: statement.bind(sqlite(value), at: index)
    }
  }

  /// The value in the storage class that the format uses.
  static func sqlite(_ value: RowValue) -> SQLiteValue {
    switch value {
    case .null: .null
    case .integer(let value): .integer(value)
    case .double(let value), .date(let value): .real(value)
    case .string(let value): .text(value)
    case .data(let value): .blob(value)
    case .reference(let value): .integer(value.key)
    case .url(let value): .text(value.absoluteString)
    case .uuid(let value): .blob(withUnsafeBytes(of: value.uuid) { Data($0) })
    case .decimal(let value): decimal(value.value)
    }
  }

  /// An integer or a real where that is exact, otherwise text.
  ///
  /// The column has numeric affinity: SQLite would convert a long number of digits alone to a real
  /// and lose the digits after the fifteenth (sqlite.org/datatype3.html, 3). A letter after the
  /// digits keeps it text; readers of numbers stop before the letter.
  private static func decimal(_ value: Decimal) -> SQLiteValue {
    guard !value.isNaN else { return .text("NaN") }
    let text = value.description
    if let whole = Int64(text) { return .integer(whole) }
    if let real = Double(text), Decimal(string: "\(real)", locale: posix) == value {
      return .real(real)
    }
    return .text(text + "m")
  }
}
