import Foundation

enum FieldValueKeys: String, CodingKey {
  case value, type, isEncrypted, sealedType, secondsSince2001
}

extension FieldValue: Decodable {
  package init(from decoder: any Decoder) throws {
    // Null in place of a field is an empty field.
    if try decoder.singleValueContainer().decodeNil() {
      (content, isEncrypted) = (.null, false)
      return
    }
    guard let container = try? decoder.container(keyedBy: FieldValueKeys.self) else {
      // CloudKit JS sends the bare value of an app that did not wrap it.
      (content, isEncrypted) = (.untagged(try UntaggedValue(from: decoder)), false)
      return
    }
    isEncrypted = try container.decodeIfPresent(Bool.self, forKey: .isEncrypted) ?? false
    try decoder.checkStored(.sealedType, in: container)
    sealedType = try container.decodeIfPresent(String.self, forKey: .sealedType)
      .flatMap { FieldType(rawValue: $0) }
    var tag = try container.decodeIfPresent(String.self, forKey: .type)
    if let encrypted = tag, encrypted.hasPrefix("ENCRYPTED_") {
      tag = String(encrypted.dropFirst("ENCRYPTED_".count))
      isEncrypted = true
    }
    if try !container.contains(.value) || container.decodeNil(forKey: .value) {
      content = .null
      return
    }
    guard let tag else {
      content = .untagged(try container.decode(UntaggedValue.self, forKey: .value))
      return
    }
    if tag == "UNKNOWN_LIST" {
      let elements = try container.decode([UntaggedValue].self, forKey: .value)
      content = elements.isEmpty ? .unknownList : .untagged(.list(elements))
      return
    }
    guard let type = FieldType(tag: tag) else {
      throw DecodingError.dataCorruptedError(
        forKey: .type,
        in: container,
        debugDescription: "Unknown field type '\(tag)'"
      )
    }
    let content = try Self.content(of: type, in: container)
    guard type == .timestamp || type == .timestampList else {
      self.content = content
      return
    }
    let exact = try container.decodeIfPresent(ExactDates.self, forKey: .secondsSince2001)
    self.content = exact.map(content.with) ?? content
  }

  private static func content(
    of type: FieldType,
    in container: KeyedDecodingContainer<FieldValueKeys>
  ) throws -> FieldContent {
    do {
      switch type {
      case .string: return .string(try container.decode(String.self, forKey: .value))
      case .int64: return .int64(try container.decode(LenientInt64.self, forKey: .value).value)
      case .double: return .double(try container.decode(LenientDouble.self, forKey: .value).value)
      case .timestamp:
        return .timestamp(
          TimestampValue(
            milliseconds: try container.decode(LenientInt64.self, forKey: .value).value
          )
        )
      case .bytes: return .bytes(try container.decode(Base64.self, forKey: .value).data)
      case .location: return .location(try container.decode(LocationValue.self, forKey: .value))
      case .reference: return .reference(try container.decode(ReferenceValue.self, forKey: .value))
      case .asset: return .asset(try container.decode(AssetValue.self, forKey: .value))
      case .stringList: return .stringList(try container.decode([String].self, forKey: .value))
      case .int64List:
        return .int64List(try container.decode([LenientInt64].self, forKey: .value).map(\.value))
      case .doubleList:
        return .doubleList(try container.decode([LenientDouble].self, forKey: .value).map(\.value))
      case .timestampList:
        return .timestampList(
          try container.decode([LenientInt64].self, forKey: .value).map {
            TimestampValue(milliseconds: $0.value)
          }
        )
      case .bytesList:
        return .bytesList(try container.decode([Base64].self, forKey: .value).map(\.data))
      case .locationList:
        return .locationList(try container.decode([LocationValue].self, forKey: .value))
      case .referenceList:
        return .referenceList(try container.decode([ReferenceValue].self, forKey: .value))
      case .assetList: return .assetList(try container.decode([AssetValue].self, forKey: .value))
      }
    } catch {
      // Any error: a number out of range is not even a `DecodingError` at this depth.
      throw DecodingError.dataCorruptedError(
        forKey: .value,
        in: container,
        debugDescription: "Invalid value, expected type \(type.rawValue)"
      )
    }
  }
}

/// An integer, also as a string (`numbersAsStrings`) or as a Boolean.
private struct LenientInt64: Decodable {
  var value: Int64

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    do {
      value = try container.decode(Int64.self)
    } catch {
      if let flag = try? container.decode(Bool.self) {
        value = flag ? 1 : 0
      } else if let text = try? container.decode(String.self), let number = Int64(text) {
        value = number
      } else {
        throw error
      }
    }
  }
}

/// A number, also as a string (`numbersAsStrings`).
private struct LenientDouble: Decodable {
  var value: Double

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    do {
      value = try container.decode(Double.self)
    } catch {
      guard let text = try? container.decode(String.self), let number = Double(text),
        number.isFinite, !text.utf8.contains(where: { $0 | 0x20 == UInt8(ascii: "x") })
      else { throw error }
      value = number
    }
  }
}

/// Bytes in base64, independent of the decoder's data strategy.
private struct Base64: Decodable {
  var data: Data

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let data = Data(base64Encoded: try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "Expected base64")
    }
    self.data = data
  }
}
