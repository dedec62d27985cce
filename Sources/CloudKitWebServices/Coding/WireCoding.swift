import Foundation

/// JSON as the service speaks it, both ways.
package enum WireCoding {
  /// Keys are sorted, so that one value always makes the same bytes.
  package static func encode(_ value: some Encodable) throws(MalformedBody) -> Data {
    if let value = value as? any JSONWritable {
      var writer = JSONWriter()
      value.write(to: &writer)
      // What JSON can't hold is told by the encoder.
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

  /// What comes by the thousand is read by a reader of its own, with the same outcome.
  package static func decode<Value: Decodable>(
    _ type: Value.Type,
    from data: Data
  ) throws(MalformedBody) -> Value {
    if let readable = type as? any JSONReadable.Type, let value = readable.read(data) as? Value {
      return value
    }
    do {
      return try JSONDecoder().decode(type, from: data)
    } catch {
      throw MalformedBody(error, in: data)
    }
  }
}
