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
      throw MalformedBody(error)
    }
  }
}

/// A body that is not JSON or not of the expected shape, or a value that JSON cannot hold.
package struct MalformedBody: Error, Hashable, Sendable, CustomStringConvertible {
  /// Where, such as `operations[3].record.fields.title`; empty for the whole body.
  package var path: String
  package var reason: String

  package init(path: String = "", reason: String) {
    self.path = path
    self.reason = reason
  }

  /// `depth`: how many steps of the path lead to what the reader knows already.
  init(_ error: any Error, below depth: Int = 0) {
    func text(_ path: [any CodingKey]) -> String { Self.text(Array(path.dropFirst(depth))) }
    switch error {
    case DecodingError.typeMismatch(_, let context),
      DecodingError.valueNotFound(_, let context),
      DecodingError.dataCorrupted(let context):
      self.init(path: text(context.codingPath), reason: context.debugDescription)
    case DecodingError.keyNotFound(let key, let context):
      self.init(
        path: text(context.codingPath),
        reason: "Missing required key '\(key.stringValue)'"
      )
    case EncodingError.invalidValue(_, let context):
      self.init(path: text(context.codingPath), reason: context.debugDescription)
    default:
      self.init(reason: "\(error)")
    }
  }

  package var description: String {
    path.isEmpty ? reason : "\(path): \(reason)"
  }

  private static func text(_ path: [any CodingKey]) -> String {
    path.reduce(into: "") { text, key in
      if let index = key.intValue {
        text += "[\(index)]"
      } else {
        text += (text.isEmpty ? "" : ".") + key.stringValue
      }
    }
  }
}
