import ArgumentParser
import CloudKitWebServices
import Foundation

/// Filters, sorts and fields as `cktool` writes them.
enum RecordFilter {
  private static let comparators: [String: String] = [
    "==": "EQUALS", "!=": "NOT_EQUALS", "<": "LESS_THAN", "<=": "LESS_THAN_OR_EQUALS",
    ">": "GREATER_THAN", ">=": "GREATER_THAN_OR_EQUALS",
  ]

  /// `FIELD OP VALUE`.
  static func filter(_ text: String) throws -> QueryFilter {
    let parts = text.split(separator: " ", maxSplits: 2).map(String.init)
    guard parts.count == 3 else {
      throw ValidationError("A filter is \"FIELD OPERATOR VALUE\", and \"\(text)\" is not.")
    }
    let name = comparators[parts[1]] ?? parts[1].uppercased()
    guard let comparator = QueryComparator(rawValue: name) else {
      throw ValidationError("There is no operator \(parts[1]).")
    }
    return QueryFilter(
      comparator: comparator,
      fieldName: parts[0],
      fieldValue: FieldValue(try value(parts[2]))
    )
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

  /// A value whose type shows, or `type:value`.
  static func value(_ text: String) throws -> FieldContent {
    let halves = text.split(separator: ":", maxSplits: 1).map(String.init)
    if halves.count == 2, halves[0].hasSuffix("Type") {
      return try typed(halves[0], halves[1])
    }
    if let number = Int64(text) { return .int64(number) }
    if let number = Double(text), number.isFinite { return .double(number) }
    if let date = date(text) { return .timestamp(date.wireMilliseconds) }
    let place = text.split(separator: ",").map { Double($0.trimmingCharacters(in: .whitespaces)) }
    if place.count == 2, let latitude = place[0], let longitude = place[1] {
      return .location(LocationValue(latitude: latitude, longitude: longitude))
    }
    return .string(text)
  }

  /// `yyyy-MM-dd`, `yyyy-MM-dd HH:mm`, or ISO 8601.
  static func date(_ text: String) -> Date? {
    if let date = try? Date.ISO8601FormatStyle().parse(text) { return date }
    let formatter = DateFormatter()
    formatter.locale = Locale(identifier: "en_US_POSIX")
    formatter.timeZone = .gmt
    for format in ["yyyy-MM-dd HH:mm", "yyyy-MM-dd"] {
      formatter.dateFormat = format
      if let date = formatter.date(from: text) { return date }
    }
    return nil
  }

  private static func typed(_ type: String, _ text: String) throws -> FieldContent {
    switch type {
    case "stringType": return .string(text)
    case "int64Type": if let number = Int64(text) { return .int64(number) }
    case "doubleType": if let number = Double(text) { return .double(number) }
    case "timestampType": if let date = date(text) { return .timestamp(date.wireMilliseconds) }
    case "bytesType": if let data = Data(base64Encoded: text) { return .bytes(data) }
    case "referenceType":
      return .reference(ReferenceValue(recordName: text, action: ReferenceAction.none))
    default: break
    }
    throw ValidationError("\(text) is not a value of the type \(type).")
  }

  // MARK: Fields

  /// One field of `--fields-json`: `{"type": "stringType", "value": …}`.
  struct Field: Decodable {
    var type: String
    var value: JSON
  }

  /// Any JSON.
  indirect enum JSON: Decodable {
    case null
    case flag(Bool)
    case number(Double)
    case whole(Int64)
    case text(String)
    case list([JSON])
    case object([String: JSON])

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if container.decodeNil() {
        self = .null
      } else if let flag = try? container.decode(Bool.self) {
        self = .flag(flag)
      } else if let whole = try? container.decode(Int64.self) {
        self = .whole(whole)
      } else if let number = try? container.decode(Double.self) {
        self = .number(number)
      } else if let text = try? container.decode(String.self) {
        self = .text(text)
      } else if let list = try? container.decode([JSON].self) {
        self = .list(list)
      } else {
        self = .object(try container.decode([String: JSON].self))
      }
    }

    var content: FieldContent {
      get throws {
        switch self {
        case .text(let text): .string(text)
        case .whole(let number): .int64(number)
        case .number(let number): .double(number)
        case .flag(let flag): .int64(flag ? 1 : 0)
        default: throw ValidationError("A field's value has an unexpected form.")
        }
      }
    }
  }

  static func fields(_ text: Data) throws -> [String: Field] {
    do {
      return try JSONDecoder().decode([String: Field].self, from: text)
    } catch {
      throw ValidationError(
        "Fields are JSON such as {\"title\":{\"type\":\"stringType\",\"value\":\"x\"}}."
      )
    }
  }

  /// The value of a field; assets are named by keys of `--asset-files`.
  static func content(
    of field: Field,
    assets: (String) async throws -> AssetValue
  ) async throws -> FieldContent {
    switch (field.type, field.value) {
    case (_, .null): return .null
    case ("assetType", .text(let key)): return .asset(try await assets(key))
    case ("assetListType", .list(let keys)):
      var values: [AssetValue] = []
      for case .text(let key) in keys { values.append(try await assets(key)) }
      return .assetList(values)
    case ("stringListType", .list(let items)):
      return .stringList(items.compactMap { if case .text(let text) = $0 { text } else { nil } })
    case ("int64ListType", .list(let items)):
      return .int64List(
        items.compactMap { if case .whole(let number) = $0 { number } else { nil } }
      )
    case ("doubleListType", .list(let items)):
      return .doubleList(
        items.compactMap {
          switch $0 {
          case .number(let number): number
          case .whole(let number): Double(number)
          default: nil
          }
        }
      )
    case ("doubleType", .whole(let number)): return .double(Double(number))
    case ("timestampType", .whole(let number)): return .timestamp(number)
    case ("locationType", .object(let object)):
      guard case .double(let latitude)? = try object["latitude"]?.content.asDouble,
        case .double(let longitude)? = try object["longitude"]?.content.asDouble
      else { throw ValidationError("A place has latitude and longitude.") }
      return .location(LocationValue(latitude: latitude, longitude: longitude))
    case ("referenceType", .object(let object)):
      guard case .text(let name)? = object["recordName"] else {
        throw ValidationError("A reference has a recordName.")
      }
      return .reference(ReferenceValue(recordName: name, action: ReferenceAction.none))
    case (let type, .text(let text)): return try typed(type, text)
    case ("int64Type", let value), ("doubleType", let value): return try value.content
    default: throw ValidationError("A field of the type \(field.type) has no such value.")
    }
  }
}

extension FieldContent {
  fileprivate var asDouble: FieldContent? {
    switch self {
    case .double: self
    case .int64(let number): .double(Double(number))
    default: nil
    }
  }
}
