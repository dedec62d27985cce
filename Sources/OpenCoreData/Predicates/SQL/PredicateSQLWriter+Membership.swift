import Foundation
import WatershedSQLite

extension PredicateSQLWriter {
  /// The longest list with a parameter for each member; longer lists are bound as JSON, since a
  /// statement's parameters are limited and its text should be the same for all long lists.
  private static let boundListLimit = 500

  /// `value IN collection`, and `collection CONTAINS value`.
  func membership(
    _ value: Operand,
    in collection: ExpressionTree,
    _ options: StringComparisonOptions
  ) throws -> SQLFragment {
    if let elements = try elements(of: collection) {
      return elements.exists(try equality(elements.term, try term(value), options))
    }
    if let constant = try constantValue(of: collection) {
      let left = try term(value)
      guard case .collection(let members) = constant else {
        let whole = SQLTerm(
          fragment: try bound(constant, in: collection),
          kind: constant.sqlKind,
          constant: constant
        )
        return try test(.contains, whole, left, options)
      }
      if left.kind == .text, case .collection(let texts)? = collection.numbersAsText {
        return try membership(left, among: texts, options)
      }
      return try membership(left, among: members, options)
    }
    if let members = try members(of: collection) {
      let left = try term(value)
      return Self.joined(
        try members.map { try equality(left, $0, options) },
        isConjunction: false
      )
    }
    // `IN` with a string tests whether the string contains the value.
    return try test(.contains, try term(collection), try term(value), options)
  }

  private func membership(
    _ left: SQLTerm,
    among members: [ExpressionValue],
    _ options: StringComparisonOptions
  ) throws -> SQLFragment {
    if let constant = left.constant {
      return Self.constant(members.contains { $0.isEqual(to: constant, options: options) })
    }
    if left.kind == .opaque, members.contains(where: { !$0.isNull }) {
      throw PredicateNotTranslatable(
        reason: "unimplemented SQL generation for IN with \(left.fragment.sql)"
      )
    }
    var tests: [SQLFragment] = []
    if members.contains(where: \.isNull) { tests.append(left.fragment + " IS NULL") }
    let comparison = StringComparison(options)
    var side = left.fragment
    if left.kind == .text, !comparison.isLiteral {
      side = "\(PredicateSQLFunctions.fold)('\(options.letters)', " + side + ")"
    }
    let values = members.compactMap { rowValue($0, comparableWith: left.kind, comparison) }
    if let list = Self.list(values) { tests.append(side + " IN " + list) }
    return Self.joined(tests, isConjunction: false)
  }

  /// The member as it is bound; nil if no value of the type can equal it.
  private func rowValue(
    _ member: ExpressionValue,
    comparableWith kind: SQLValueKind,
    _ comparison: StringComparison
  ) -> RowValue? {
    if case .object(let table) = kind {
      guard case .object(let identifier, _) = member, let row = naming.sqlRow(of: identifier),
        row.table == table
      else { return nil }
      return .integer(row.key)
    }
    guard member.sqlKind == kind, kind != .null else { return nil }
    if let text = member.text { return .string(comparison.folded(text)) }
    return member.rowValue
  }

  private static func list(_ values: [RowValue]) -> SQLFragment? {
    if values.isEmpty { return nil }
    if values.count > boundListLimit { return LongList(values).fragment }
    let marks = Array(repeating: "?", count: values.count).joined(separator: ", ")
    return SQLFragment("(\(marks))", values)
  }
}

/// A list of any length as a few parameters: one JSON array for each type of value.
///
/// JSON preserves integers and texts. Other values are encoded: doubles as the integers of their
/// bits, bytes as hexadecimal digits.
private struct LongList {
  private var integers: [Int64] = []
  private var reals: [Int64] = []
  private var texts: [String] = []
  private var bytes: [String] = []
  private var textBytes: [String] = []

  init(_ values: [RowValue]) {
    for value in values {
      switch value {
      case .null: break
      case .integer(let number): integers.append(number)
      case .reference(let reference): integers.append(reference.key)
      case .double(let number), .date(let number): add(number)
      case .decimal: add(stored: RowCoding.sqlite(value))
      // SQLite ends a JSON string at an escaped NUL.
      case .string(let text):
        if text.utf8.contains(0) {
          textBytes.append(Self.digits(text.utf8))
        } else {
          texts.append(text)
        }
      case .url(let url): texts.append(url.absoluteString)
      case .data(let data): bytes.append(Self.digits(data))
      case .uuid(let uuid): bytes.append(withUnsafeBytes(of: uuid.uuid) { Self.digits($0) })
      }
    }
  }

  /// A decimal in its column's representation: an integer, a real if that is exact, else text.
  private mutating func add(stored value: SQLiteValue) {
    switch value {
    case .integer(let number): integers.append(number)
    case .real(let number): add(number)
    case .text(let text): texts.append(text)
    case .blob, .null: break
    }
  }

  private mutating func add(_ number: Double) {
    reals.append(Int64(bitPattern: number.bitPattern))
  }

  var fragment: SQLFragment {
    var parts: [SQLFragment] = []
    func add(_ json: String, _ value: String) {
      parts.append(SQLFragment("SELECT \(value) FROM json_each(?)", [.string(json)]))
    }
    if !integers.isEmpty { add(Self.json(integers), "value") }
    if !reals.isEmpty { add(Self.json(reals), "\(PredicateSQLFunctions.real)(value)") }
    if !texts.isEmpty { add(Self.json(texts), "value") }
    if !bytes.isEmpty { add(Self.json(bytes), "\(PredicateSQLFunctions.bytes)(value)") }
    if !textBytes.isEmpty {
      add(Self.json(textBytes), "CAST(\(PredicateSQLFunctions.bytes)(value) AS TEXT)")
    }
    return "(" + parts.joined(separator: " UNION ALL ") + ")"
  }

  private static func json(_ numbers: [Int64]) -> String {
    "[" + numbers.map(String.init).joined(separator: ",") + "]"
  }

  private static func json(_ texts: [String]) -> String {
    var json = Data()
    json.append(UInt8(ascii: "["))
    for (index, text) in texts.enumerated() {
      if index > 0 { json.append(UInt8(ascii: ",")) }
      json.append(UInt8(ascii: "\""))
      for byte in text.utf8 {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"):
          json.append(UInt8(ascii: "\\"))
          json.append(byte)
        case 0..<0x20: json.append(contentsOf: "\\u00\(digits(CollectionOfOne(byte)))".utf8)
        default: json.append(byte)
        }
      }
      json.append(UInt8(ascii: "\""))
    }
    json.append(UInt8(ascii: "]"))
    return String(decoding: json, as: UTF8.self)
  }

  private static func digits(_ bytes: some Sequence<UInt8>) -> String {
    let digits = Array("0123456789abcdef".utf8)
    var text: [UInt8] = []
    for byte in bytes {
      text.append(digits[Int(byte >> 4)])
      text.append(digits[Int(byte & 15)])
    }
    return String(decoding: text, as: UTF8.self)
  }
}
