import Foundation

/// A body that is not JSON or not of the expected shape, or a value that JSON cannot hold.
package struct MalformedBody: Error, Hashable, Sendable, CustomStringConvertible {
  /// The position, such as `operations[3].record.fields.title`; empty for the whole body.
  package var path: String
  package var reason: String

  package init(path: String = "", reason: String) {
    self.path = path
    self.reason = reason
  }

  /// `depth`: the number of leading path components to omit, since the reader knows them.
  init(_ error: any Error, below depth: Int = 0) {
    func text(_ path: [any CodingKey]) -> String { Self.text(Array(path.dropFirst(depth))) }
    switch error {
    case DecodingError.typeMismatch(let type, let context),
      DecodingError.valueNotFound(let type, let context):
      let found = Self.found(context.debugDescription).map { ", found \($0)" } ?? ""
      self.init(
        path: text(context.codingPath),
        reason: "Expected \(Self.word(for: type))\(found)"
      )
    case DecodingError.dataCorrupted(let context):
      self.init(
        path: text(context.codingPath),
        reason: Self.unknownWord(context.debugDescription) ?? context.debugDescription
      )
    case DecodingError.keyNotFound(let key, let context):
      self.init(
        path: text(context.codingPath),
        reason: "Missing required key '\(key.stringValue)'"
      )
    case EncodingError.invalidValue(_, let context):
      self.init(path: text(context.codingPath), reason: context.debugDescription)
    default:
      // Foundation's own error, whose text has names of its implementation.
      self.init(reason: Self.noJSON)
    }
  }

  /// The reason why a whole body could not be decoded.
  init(_ error: any Error, in json: Data) {
    self.init(error)
    guard case DecodingError.dataCorrupted(let context) = error, context.codingPath.isEmpty else {
      return
    }
    if json.isEmpty {
      reason = "The body is empty, and a JSON object is expected"
    } else if !JSONBounds.isJSON(json) {
      reason = Self.noJSON
    } else {
      // `JSONDecoder` fails for the whole body if a number does not fit its type.
      reason = "A number is too large, or has a fraction where only whole numbers can be"
    }
  }

  package static let noJSON = "The body is not valid JSON"

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

  // MARK: Names of JSON types

  private static func word(for type: any Any.Type) -> String {
    switch type {
    case is String.Type: "a string"
    case is Bool.Type: "true or false"
    case is any FixedWidthInteger.Type: "a whole number"
    case is any BinaryFloatingPoint.Type: "a number"
    case is [Any].Type, is any UnkeyedDecodingContainer.Type: "an array"
    default: "an object"
    }
  }

  /// The JSON type that the decoder found, taken from its message.
  private static func found(_ text: String) -> String? {
    let words = [
      ("found null", "null"), ("a dictionary", "an object"), ("an array", "an array"),
      ("a string", "a string"), ("bool", "true or false"), ("number", "a number"),
    ]
    guard let start = text.range(of: "found ") else { return nil }
    let rest = text[start.lowerBound...]
    return words.first { rest.contains($0.0) }?.1
  }

  /// The decoder's message about an unknown enumeration value, in the client's terms.
  private static func unknownWord(_ text: String) -> String? {
    guard text.hasPrefix("Cannot initialize "),
      let end = text.range(of: " from invalid String value ")
    else { return nil }
    return "Unknown value '\(text[end.upperBound...].prefix(64))'"
  }
}
