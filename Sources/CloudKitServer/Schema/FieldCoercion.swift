import CloudKitWebServices
import Foundation

/// Converts a client's value to the declared type.
enum FieldCoercion {
  /// The value as that type; nil if it does not fit: a tagged value fits its own type only.
  static func value(_ content: FieldContent, as type: FieldType) -> FieldContent? {
    if content.type == type { return content }
    switch content {
    case .unknownList: return emptyList(of: type)
    case .untagged(.list(let elements)):
      guard let element = type.element else { return nil }
      let values = elements.compactMap { scalar($0, as: element) }
      return values.count == elements.count ? list(values, of: element) : nil
    case .untagged(let value): return scalar(value, as: type)
    default: return nil
    }
  }

  /// The type of a new field with an untagged value; nil for an empty list.
  static func inferredType(_ content: FieldContent) -> FieldType? {
    if let type = content.type { return type }
    guard case .untagged(let value) = content else { return nil }
    guard case .list(let elements) = value else { return inferredScalar(value) }
    let types = Set(elements.compactMap(inferredScalar))
    if types == [.int64, .double] { return .doubleList }
    return types.count == 1 ? types.first?.list : nil
  }

  private static func inferredScalar(_ value: UntaggedValue) -> FieldType? {
    switch value {
    case .string: .string
    case .integer, .boolean: .int64
    case .fraction: .double
    case .location: .location
    case .reference: .reference
    case .asset: .asset
    case .list: nil
    }
  }

  private static func scalar(_ value: UntaggedValue, as type: FieldType) -> FieldContent? {
    switch (type, value) {
    case (.string, .string(let text)): .string(text)
    case (.int64, .integer(let number)): .int64(number)
    case (.int64, .boolean(let flag)): .int64(flag ? 1 : 0)
    case (.int64, .fraction(let number)): Int64(exactly: number).map { .int64($0) }
    case (.int64, .string(let text)): Int64(text).map { .int64($0) }
    case (.double, .integer(let number)): .double(Double(number))
    case (.double, .fraction(let number)): .double(number)
    case (.double, .string(let text)): Double(text).flatMap { $0.isFinite ? .double($0) : nil }
    case (.timestamp, .integer(let number)): timestamp(number)
    case (.timestamp, .fraction(let number)): Int64(exactly: number).map(timestamp)
    case (.timestamp, .string(let text)): Int64(text).map(timestamp)
    case (.bytes, .string(let text)): Data(base64Encoded: text).map { .bytes($0) }
    case (.location, .location(let place)): .location(place)
    case (.reference, .reference(let reference)): .reference(reference)
    case (.asset, .asset(let asset)): .asset(asset)
    default: nil
    }
  }

  private static func timestamp(_ milliseconds: Int64) -> FieldContent {
    .timestamp(TimestampValue(milliseconds: milliseconds))
  }

  /// An empty list of a list type.
  static func emptyList(of type: FieldType) -> FieldContent? {
    type.element.flatMap { list([], of: $0) }
  }

  private static func list(_ values: [FieldContent], of element: FieldType) -> FieldContent? {
    switch element {
    case .string: .stringList(values.compactMap { if case .string(let v) = $0 { v } else { nil } })
    case .int64: .int64List(values.compactMap { if case .int64(let v) = $0 { v } else { nil } })
    case .double: .doubleList(values.compactMap { if case .double(let v) = $0 { v } else { nil } })
    case .timestamp:
      .timestampList(values.compactMap { if case .timestamp(let v) = $0 { v } else { nil } })
    case .bytes: .bytesList(values.compactMap { if case .bytes(let v) = $0 { v } else { nil } })
    case .location:
      .locationList(values.compactMap { if case .location(let v) = $0 { v } else { nil } })
    case .reference:
      .referenceList(values.compactMap { if case .reference(let v) = $0 { v } else { nil } })
    case .asset: .assetList(values.compactMap { if case .asset(let v) = $0 { v } else { nil } })
    default: nil
    }
  }
}
