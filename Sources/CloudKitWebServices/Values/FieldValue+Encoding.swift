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
    try container.encodeIfPresent(content.secondsSince2001, forKey: .secondsSince2001)
    if let type = content.type {
      try container.encode(type.rawValue, forKey: .type)
    }
    func encode(_ number: some Encodable & CustomStringConvertible) throws {
      if numbersAsStrings {
        try container.encode(number.description, forKey: .value)
      } else {
        try container.encode(number, forKey: .value)
      }
    }
    func encode(_ numbers: [some Encodable & CustomStringConvertible]) throws {
      if numbersAsStrings {
        try container.encode(numbers.map(\.description), forKey: .value)
      } else {
        try container.encode(numbers, forKey: .value)
      }
    }
    switch content {
    case .null: try container.encodeNil(forKey: .value)
    case .string(let value): try container.encode(value, forKey: .value)
    case .int64(let value): try encode(value)
    case .timestamp(let value): try encode(value.milliseconds)
    case .double(let value): try encode(value)
    case .bytes(let value): try container.encode(value.base64EncodedString(), forKey: .value)
    case .location(let value): try container.encode(value, forKey: .value)
    case .reference(let value): try container.encode(value, forKey: .value)
    case .asset(let value): try container.encode(value, forKey: .value)
    case .stringList(let values): try container.encode(values, forKey: .value)
    case .int64List(let values): try encode(values)
    case .timestampList(let values): try encode(values.map(\.milliseconds))
    case .doubleList(let values): try encode(values)
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
