import ArgumentParser
import CloudKitWebServices
import Foundation

/// Filters, sort orders and field lists in `cktool`'s syntax.
enum RecordFilter {
  private static let comparators: [String: String] = [
    "==": "EQUALS", "!=": "NOT_EQUALS", "<": "LESS_THAN", "<=": "LESS_THAN_OR_EQUALS",
    ">": "GREATER_THAN", ">=": "GREATER_THAN_OR_EQUALS",
  ]

  /// For the help and for the error of an unknown operator.
  static let operators =
    "The operators are ==, !=, <, <=, >, >= and, in words, "
    + QueryComparator.allCases.map(\.rawValue).joined(separator: ", ") + "."

  /// `FIELD OP VALUE`; for `NEAR` the value is `LATITUDE,LONGITUDE,METRES`, and for operators on lists
  /// `A,B,C` or a list in JSON.
  static func filter(_ text: String) throws -> QueryFilter {
    let parts = text.split(separator: " ", maxSplits: 2).map(String.init)
    guard parts.count == 3 else {
      throw ValidationError("A filter is \"FIELD OPERATOR VALUE\", and \"\(text)\" is not.")
    }
    let name = comparators[parts[1]] ?? parts[1].uppercased()
    guard let comparator = QueryComparator(name: name) else {
      throw ValidationError("There is no operator \(parts[1]). \(operators)")
    }
    var filter = QueryFilter(comparator: comparator, fieldName: parts[0])
    switch comparator {
    case .near:
      let circle = try circle(parts[2])
      filter.fieldValue = FieldValue(.location(circle.place))
      filter.distance = circle.metres
    case .in, .notIn, .listContainsAny, .notListContainsAny, .listContainsAll, .notListContainsAll:
      filter.fieldValue = FieldValue(try list(parts[2]))
    default: filter.fieldValue = FieldValue(try value(parts[2]))
    }
    return filter
  }

  private static func circle(_ text: String) throws -> (place: LocationValue, metres: Double) {
    let bare =
      text.hasPrefix("locationType:") ? String(text.dropFirst("locationType:".count)) : text
    let numbers = bare.split { $0 == "," || $0 == " " }.map { Double($0) }
    guard numbers.count == 3, let latitude = numbers[0], let longitude = numbers[1],
      let metres = numbers[2]
    else {
      throw ValidationError("NEAR takes LATITUDE,LONGITUDE,METRES, and \"\(text)\" is not that.")
    }
    return (LocationValue(latitude: latitude, longitude: longitude), metres)
  }

  /// `A,B,C`, `["A", "B"]` or `type:A,B,C`.
  private static func list(_ text: String) throws -> FieldContent {
    if text.hasPrefix("[") {
      guard let values = try? JSONDecoder().decode([UntaggedValue].self, from: Data(text.utf8))
      else { throw ValidationError("\(text) is not a list in JSON.") }
      return values.isEmpty ? .unknownList : .untagged(.list(values))
    }
    if let (type, rest) = typed(text) {
      let items = rest.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
      let element = type.element ?? type
      return .untagged(.list(try items.map { try untagged($0, as: element) }))
    }
    let items = text.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
    return .untagged(.list(items.map(untagged)))
  }

  /// `FIELD` or `FIELD ASC|DESC`.
  static func sort(_ text: String) throws -> QuerySort {
    let parts = text.split(separator: " ").map(String.init)
    let direction = parts.count == 2 ? parts[1].uppercased() : "ASC"
    guard (1...2).contains(parts.count), ["ASC", "DESC"].contains(direction) else {
      throw ValidationError("A sort is \"FIELD ASC\" or \"FIELD DESC\", and \"\(text)\" is not.")
    }
    return QuerySort(fieldName: parts[0], ascending: direction == "ASC")
  }

  /// A value whose type is evident, or `type:value`.
  ///
  /// Numbers and texts are sent without a type: the field's own type decides whether 5 is an INT64,
  /// a DOUBLE or a number of milliseconds.
  static func value(_ text: String) throws -> FieldContent {
    if let (type, rest) = typed(text) { return try content(rest, as: type) }
    return .untagged(untagged(text))
  }

  private static func typed(_ text: String) -> (FieldType, String)? {
    let halves = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard halves.count == 2, halves[0].hasSuffix("Type"),
      let type = FieldInput.type(String(halves[0]))?.type
    else { return nil }
    return (type, String(halves[1]))
  }

  private static func untagged(_ text: String) -> UntaggedValue {
    if let number = Int64(text) { return .integer(number) }
    if let number = Double(text), number.isFinite { return .fraction(number) }
    if let date = date(text) { return .integer(date.wireMilliseconds) }
    if let place = place(text) { return .location(place) }
    return .string(text)
  }

  /// One value of an explicit type.
  private static func untagged(_ text: String, as type: FieldType) throws -> UntaggedValue {
    switch try content(text, as: type) {
    case .string(let text): .string(text)
    case .int64(let number): .integer(number)
    case .timestamp(let date): .integer(date.milliseconds)
    case .double(let number): .fraction(number)
    case .bytes(let data): .string(data.base64EncodedString())
    case .location(let place): .location(place)
    case .reference(let reference): .reference(reference)
    default: throw ValidationError("\(text) is not a value of the type \(type.rawValue).")
    }
  }

  private static func content(_ text: String, as type: FieldType) throws -> FieldContent {
    switch type {
    case .string: return .string(text)
    case .int64: if let number = Int64(text) { return .int64(number) }
    case .double: if let number = Double(text), number.isFinite { return .double(number) }
    case .timestamp:
      if let date = date(text) { return .timestamp(TimestampValue(date)) }
      if let number = Int64(text) { return .timestamp(TimestampValue(milliseconds: number)) }
    case .bytes: if let data = Data(base64Encoded: text) { return .bytes(data) }
    case .location: if let place = place(text) { return .location(place) }
    case .reference:
      return .reference(ReferenceValue(recordName: text, action: ReferenceAction.none))
    default: break
    }
    throw ValidationError("\(text) is not a value of the type \(type.rawValue).")
  }

  /// `LATITUDE,LONGITUDE`.
  private static func place(_ text: String) -> LocationValue? {
    let numbers = text.split(separator: ",").map { Double($0.trimmingCharacters(in: .whitespaces)) }
    guard numbers.count == 2, let latitude = numbers[0], let longitude = numbers[1] else {
      return nil
    }
    return LocationValue(latitude: latitude, longitude: longitude)
  }

  /// ISO 8601, or `yyyy-MM-dd`, `yyyy-MM-dd HH:mm`, `MM/dd/yyyy` and `MM/dd/yyyy HH:mm` in this
  /// machine's time zone, as in `cktool`.
  static func date(_ text: String) -> Date? {
    if let date = try? Date.ISO8601FormatStyle().parse(text) { return date }
    let formatter = DateFormatter()
    formatter.locale = Locale(identifier: "en_US_POSIX")
    formatter.timeZone = .current
    formatter.isLenient = false
    for format in ["yyyy-MM-dd HH:mm", "yyyy-MM-dd", "MM/dd/yyyy HH:mm", "MM/dd/yyyy"] {
      formatter.dateFormat = format
      if let date = formatter.date(from: text) { return date }
    }
    return nil
  }
}
