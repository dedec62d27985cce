import Foundation

extension FieldValue: Encodable {
  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: FieldValueKeys.self)
    try encode(into: &container, numbersAsStrings: false)
  }

  /// Writes value, tag and flag; numbers as strings if the request asked for that.
  func encode(
    into container: inout KeyedEncodingContainer<FieldValueKeys>,
    numbersAsStrings: Bool
  ) throws {
    if isEncrypted { try container.encode(true, forKey: .isEncrypted) }
    try container.encodeIfPresent(sealedType?.rawValue, forKey: .sealedType)
    if let type = content.type {
      try container.encode(type.rawValue, forKey: .type)
    }
    switch content {
    case .null: try container.encodeNil(forKey: .value)
    case .string(let value): try container.encode(value, forKey: .value)
    case .int64(let value), .timestamp(let value):
      if numbersAsStrings {
        try container.encode(String(value), forKey: .value)
      } else {
        try container.encode(value, forKey: .value)
      }
    case .double(let value):
      if numbersAsStrings {
        try container.encode(String(value), forKey: .value)
      } else {
        try container.encode(value, forKey: .value)
      }
    case .bytes(let value): try container.encode(value.base64EncodedString(), forKey: .value)
    case .location(let value): try container.encode(value, forKey: .value)
    case .reference(let value): try container.encode(value, forKey: .value)
    case .asset(let value): try container.encode(value, forKey: .value)
    case .stringList(let values): try container.encode(values, forKey: .value)
    case .int64List(let values), .timestampList(let values):
      if numbersAsStrings {
        try container.encode(values.map { String($0) }, forKey: .value)
      } else {
        try container.encode(values, forKey: .value)
      }
    case .doubleList(let values):
      if numbersAsStrings {
        try container.encode(values.map { String($0) }, forKey: .value)
      } else {
        try container.encode(values, forKey: .value)
      }
    case .bytesList(let values):
      try container.encode(values.map { $0.base64EncodedString() }, forKey: .value)
    case .locationList(let values): try container.encode(values, forKey: .value)
    case .referenceList(let values): try container.encode(values, forKey: .value)
    case .assetList(let values): try container.encode(values, forKey: .value)
    case .unknownList:
      try container.encode("UNKNOWN_LIST", forKey: .type)
      try container.encode([String](), forKey: .value)
    case .untagged(let value): try container.encode(value, forKey: .value)
    }
  }
}
