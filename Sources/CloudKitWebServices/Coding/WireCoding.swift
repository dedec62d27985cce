import Foundation

/// Encodes and decodes the service's JSON.
package enum WireCoding {
  /// Keys are sorted, so that equal values have equal bytes.
  package static func encode(_ value: some Encodable) throws(MalformedBody) -> Data {
    if let value = value as? any JSONWritable {
      var writer = JSONWriter()
      value.write(to: &writer)
      // `JSONEncoder` reports a value that JSON can't express.
      if writer.isExact { return writer.finished() }
    }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    do {
      return try encoder.encode(value)
    } catch {
      throw MalformedBody(error)
    }
  }

  /// The source of the JSON, which decides the keys that it may have.
  package enum Origin: Sendable {
    /// A client, or a server that this process is a client of.
    case wire
    /// The server's own storage. Only there are `sealedType` of a value and `blob` of an asset
    /// allowed: a client that sent them could make the server decrypt, or return, data that it
    /// never stored.
    case storage
  }

  /// Frequent types have their own reader, with the same result.
  package static func decode<Value: Decodable>(
    _ type: Value.Type,
    from data: Data,
    origin: Origin = .wire
  ) throws(MalformedBody) -> Value {
    if let readable = type as? any JSONReadable.Type,
      let value = readable.read(data, origin) as? Value
    {
      return value
    }
    do {
      return try decoder(of: data, origin).decode(type, from: data)
    } catch {
      throw MalformedBody(error, in: data)
    }
  }

  /// A decoder of these bytes.
  static func decoder(of json: Data, _ origin: Origin = .wire) -> JSONDecoder {
    let decoder = JSONDecoder()
    if let key = CodingUserInfoKey.jsonOrigin { decoder.userInfo[key] = origin }
    if let key = CodingUserInfoKey.wholeFractions, let fractions = WholeFractions(in: json) {
      decoder.userInfo[key] = fractions
    }
    return decoder
  }
}

extension CodingUserInfoKey {
  fileprivate static let jsonOrigin = CodingUserInfoKey(rawValue: "watershed.origin")
  fileprivate static let wholeFractions = CodingUserInfoKey(rawValue: "watershed.fractions")
}

extension Decoder {
  /// The places of numbers such as `2.0` in the decoded JSON; nil if there are none.
  var wholeFractions: WholeFractions? {
    CodingUserInfoKey.wholeFractions.flatMap { userInfo[$0] as? WholeFractions }
  }

  /// Refuses a key that is allowed only in the server's storage.
  func checkStored<Key>(
    _ key: Key,
    in container: KeyedDecodingContainer<Key>
  ) throws {
    guard container.contains(key) else { return }
    let origin = CodingUserInfoKey.jsonOrigin.flatMap { userInfo[$0] as? WireCoding.Origin }
    guard origin == .storage else {
      throw DecodingError.dataCorruptedError(
        forKey: key,
        in: container,
        debugDescription: "The key '\(key.stringValue)' cannot be set by a client"
      )
    }
  }
}
