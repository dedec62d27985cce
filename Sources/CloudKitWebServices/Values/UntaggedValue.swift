import Foundation

/// A value without a type tag, with its JSON type.
package enum UntaggedValue: Hashable, Sendable {
  case string(String)
  case integer(Int64)
  /// A number that is written with a point or an exponent, `2.0` too: a client's type has fractions.
  case fraction(Double)
  case boolean(Bool)
  // Boxed: otherwise each number of a list would take as many bytes as a file's description.
  indirect case location(LocationValue)
  indirect case reference(ReferenceValue)
  indirect case asset(AssetValue)
  case list([UntaggedValue])
}

extension UntaggedValue {
  /// Decodes the elements of a list.
  ///
  /// `JSONDecoder` has no other way to find out a value's type than an attempt, and an error takes
  /// longer than many values. An element usually has the type of the one before it, so that type is
  /// attempted first.
  fileprivate static func elements(from decoder: any Decoder) throws -> [UntaggedValue] {
    var container = try decoder.unkeyedContainer()
    var elements: [UntaggedValue] = []
    let fractions = decoder.wholeFractions
    while !container.isAtEnd {
      let next: UntaggedValue? =
        switch elements.last {
        case .string: try? .string(container.decode(String.self))
        // The decoder of an element knows its place.
        case .integer where fractions == nil: try? .integer(container.decode(Int64.self))
        case .boolean: try? .boolean(container.decode(Bool.self))
        default: nil
        }
      elements.append(try next ?? container.decode(ListElement.self).value)
    }
    return elements
  }
}

/// An element of a list; a list is refused before its own elements are read, so that a client can't
/// control the depth of the stack.
private struct ListElement: Decodable {
  var value: UntaggedValue

  init(from decoder: any Decoder) throws {
    guard (try? decoder.unkeyedContainer()) == nil else {
      throw DecodingError.dataCorrupted(
        .init(codingPath: decoder.codingPath, debugDescription: "A list cannot hold lists")
      )
    }
    value = try UntaggedValue(from: decoder)
  }
}

extension UntaggedValue: Codable {
  private enum Shape: String, CodingKey {
    case latitude, longitude, recordName, fileChecksum, receipt, downloadURL
  }

  package init(from decoder: any Decoder) throws {
    if let object = try? decoder.container(keyedBy: Shape.self) {
      if object.contains(.latitude), object.contains(.longitude) {
        self = .location(try LocationValue(from: decoder))
      } else if object.contains(.recordName) {
        self = .reference(try ReferenceValue(from: decoder))
      } else if object.contains(.fileChecksum) || object.contains(.receipt)
        || object.contains(.downloadURL)
      {
        self = .asset(try AssetValue(from: decoder))
      } else {
        throw DecodingError.dataCorrupted(
          .init(
            codingPath: decoder.codingPath,
            debugDescription: "Expected a location, a reference or an asset"
          )
        )
      }
      return
    }
    if (try? decoder.unkeyedContainer()) != nil {
      self = .list(try Self.elements(from: decoder))
      return
    }
    let single = try decoder.singleValueContainer()
    if let value = try? single.decode(String.self) {
      self = .string(value)
    } else if let value = try? single.decode(Bool.self) {
      self = .boolean(value)
    } else if let value = try? single.decode(Int64.self) {
      let isFraction = decoder.wholeFractions?.contains(decoder.codingPath) == true
      self = isFraction ? .fraction(try single.decode(Double.self)) : .integer(value)
    } else if let value = try? single.decode(Double.self) {
      self = .fraction(value)
    } else {
      // Null in a list, half of a surrogate pair, or a number that is not finite.
      throw DecodingError.dataCorrupted(
        .init(codingPath: decoder.codingPath, debugDescription: "Invalid value")
      )
    }
  }

  package func encode(to encoder: any Encoder) throws {
    switch self {
    case .string(let value): try value.encode(to: encoder)
    case .integer(let value): try value.encode(to: encoder)
    case .fraction(let value): try value.encode(to: encoder)
    case .boolean(let value): try value.encode(to: encoder)
    case .location(let value): try value.encode(to: encoder)
    case .reference(let value): try value.encode(to: encoder)
    case .asset(let value): try value.encode(to: encoder)
    case .list(let values): try values.encode(to: encoder)
    }
  }
}
