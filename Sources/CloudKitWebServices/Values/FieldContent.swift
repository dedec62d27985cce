import Foundation

/// The content of a field; large cases are indirect, so that the common ones are small.
package enum FieldContent: Hashable, Sendable {
  /// No value: in a request it removes the field.
  case null
  case string(String)
  case int64(Int64)
  case double(Double)
  case timestamp(TimestampValue)
  case bytes(Data)
  indirect case location(LocationValue)
  indirect case reference(ReferenceValue)
  indirect case asset(AssetValue)
  case stringList([String])
  case int64List([Int64])
  case doubleList([Double])
  case timestampList([TimestampValue])
  case bytesList([Data])
  case locationList([LocationValue])
  case referenceList([ReferenceValue])
  case assetList([AssetValue])
  /// An empty list whose element type is unknown: `UNKNOWN_LIST`.
  case unknownList
  /// A value without a type tag; the schema decides its type.
  indirect case untagged(UntaggedValue)

  /// The tag; nil for null, for an unknown list and for an untagged value.
  package var type: FieldType? {
    switch self {
    case .null, .unknownList, .untagged: nil
    case .string: .string
    case .int64: .int64
    case .double: .double
    case .timestamp: .timestamp
    case .bytes: .bytes
    case .location: .location
    case .reference: .reference
    case .asset: .asset
    case .stringList: .stringList
    case .int64List: .int64List
    case .doubleList: .doubleList
    case .timestampList: .timestampList
    case .bytesList: .bytesList
    case .locationList: .locationList
    case .referenceList: .referenceList
    case .assetList: .assetList
    }
  }

  /// The location, if this is one, tagged or not.
  package var location: LocationValue? {
    switch self {
    case .location(let value), .untagged(.location(let value)): value
    default: nil
    }
  }

  /// Every location in this value, in order.
  package var locations: [LocationValue] {
    switch self {
    case .location(let value): [value]
    case .locationList(let values): values
    default: []
    }
  }

  /// Every reference in this value, in order.
  package var references: [ReferenceValue] {
    switch self {
    case .reference(let value): [value]
    case .referenceList(let values): values
    default: []
    }
  }

  /// The value with its references in a zone; nil: in the zone of the record that holds them.
  package func placingReferences(in zone: ZoneID?) -> FieldContent {
    func placed(_ reference: ReferenceValue) -> ReferenceValue {
      var reference = reference
      reference.zoneID = zone
      return reference
    }
    return switch self {
    case .reference(let value): .reference(placed(value))
    case .referenceList(let values): .referenceList(values.map(placed))
    default: self
    }
  }

  /// Every asset in this value, in order.
  package var assets: [AssetValue] {
    switch self {
    case .asset(let value): [value]
    case .assetList(let values): values
    default: []
    }
  }
}
