import Foundation

/// The parts of an object of JSON that this server wrote, as bytes: nothing is decoded.
struct JSONMembers {
  private let bytes: [UInt8]

  struct Malformed: Error {}

  init(of json: Data) { bytes = Array(json) }

  /// The elements of an array that is a member of the object; none if there is no such member.
  func elements(of name: String) throws -> [Data] {
    var place = 0
    guard try next(&place) == UInt8(ascii: "{") else { throw Malformed() }
    while place < bytes.count, bytes[place] != UInt8(ascii: "}") {
      let key = try value(&place)
      guard try next(&place) == UInt8(ascii: ":") else { throw Malformed() }
      if key.elementsEqual("\"\(name)\"".utf8) { return try elements(&place) }
      _ = try value(&place)
      if place < bytes.count, bytes[place] == UInt8(ascii: ",") { place += 1 }
    }
    return []
  }

  private func elements(_ place: inout Int) throws -> [Data] {
    guard try next(&place) == UInt8(ascii: "[") else { throw Malformed() }
    var found: [Data] = []
    while place < bytes.count, bytes[place] != UInt8(ascii: "]") {
      found.append(Data(try value(&place)))
      if place < bytes.count, bytes[place] == UInt8(ascii: ",") { place += 1 }
    }
    return found
  }

  private func next(_ place: inout Int) throws -> UInt8 {
    guard place < bytes.count else { throw Malformed() }
    defer { place += 1 }
    return bytes[place]
  }

  /// The bytes of the value that begins at the place, which is then after it.
  private func value(_ place: inout Int) throws -> ArraySlice<UInt8> {
    let start = place
    var depth = 0
    var isText = false
    while place < bytes.count {
      switch bytes[place] {
      case UInt8(ascii: "\\") where isText: place += 1
      case UInt8(ascii: "\""):
        isText.toggle()
      case _ where isText: break
      case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        if depth == 0 { return bytes[start..<place] }
        depth -= 1
      case UInt8(ascii: ","), UInt8(ascii: ":"):
        if depth == 0 { return bytes[start..<place] }
      default: break
      }
      place += 1
    }
    throw Malformed()
  }
}
