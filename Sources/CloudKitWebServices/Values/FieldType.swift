/// The type tags of field values on the wire.
package enum FieldType: String, Codable, Hashable, Sendable, CaseIterable {
  case string = "STRING"
  case int64 = "INT64"
  case double = "DOUBLE"
  case timestamp = "TIMESTAMP"
  case bytes = "BYTES"
  case location = "LOCATION"
  case reference = "REFERENCE"
  case asset = "ASSETID"
  case stringList = "STRING_LIST"
  case int64List = "INT64_LIST"
  case doubleList = "DOUBLE_LIST"
  case timestampList = "TIMESTAMP_LIST"
  case bytesList = "BYTES_LIST"
  case locationList = "LOCATION_LIST"
  case referenceList = "REFERENCE_LIST"
  case assetList = "ASSETID_LIST"

  /// Reads a tag as clients write it: the older documentation has `ASSET` for the wire's `ASSETID`,
  /// and some clients have names for Booleans and numbers that the schema lacks.
  package init?(tag: String) {
    switch tag {
    case "BOOLEAN", "NUMBER_INT64": self = .int64
    case "ASSET": self = .asset
    case "ASSET_LIST": self = .assetList
    default: self.init(rawValue: tag)
    }
  }

  package var isList: Bool { element != nil }

  /// The type of a list's elements.
  package var element: FieldType? {
    switch self {
    case .stringList: .string
    case .int64List: .int64
    case .doubleList: .double
    case .timestampList: .timestamp
    case .bytesList: .bytes
    case .locationList: .location
    case .referenceList: .reference
    case .assetList: .asset
    default: nil
    }
  }

  /// The type of a list of this type; there are no lists of lists.
  package var list: FieldType? {
    switch self {
    case .string: .stringList
    case .int64: .int64List
    case .double: .doubleList
    case .timestamp: .timestampList
    case .bytes: .bytesList
    case .location: .locationList
    case .reference: .referenceList
    case .asset: .assetList
    default: nil
    }
  }
}
