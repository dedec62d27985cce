import ArgumentParser

/// Any JSON value, with integers distinguished from other numbers.
enum JSONValue: Decodable, Hashable {
  case null
  case flag(Bool)
  case number(Double)
  case whole(Int64)
  case text(String)
  case list([JSONValue])
  case object([String: JSONValue])

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let flag = try? container.decode(Bool.self) {
      self = .flag(flag)
    } else if let whole = try? container.decode(Int64.self) {
      self = .whole(whole)
    } else if let number = try? container.decode(Double.self) {
      self = .number(number)
    } else if let text = try? container.decode(String.self) {
      self = .text(text)
    } else if let list = try? container.decode([JSONValue].self) {
      self = .list(list)
    } else {
      self = .object(try container.decode([String: JSONValue].self))
    }
  }

  /// The object's members; throws for any other than the known ones.
  func object(_ place: String, of known: Set<String>) throws -> [String: JSONValue] {
    guard case .object(let members) = self else {
      throw ValidationError(
        "\(place): an object with \(known.sorted().joined(separator: ", ")) is expected."
      )
    }
    if let unknown = members.keys.sorted().first(where: { !known.contains($0) }) {
      throw ValidationError(
        "\(place).\(unknown) is not understood; known are "
          + "\(known.sorted().joined(separator: ", "))."
      )
    }
    return members
  }

  /// The text; nil for null.
  func text(_ place: String) throws -> String? {
    switch self {
    case .null: nil
    case .text(let text): text
    default: throw ValidationError("\(place): a string is expected.")
    }
  }
}
