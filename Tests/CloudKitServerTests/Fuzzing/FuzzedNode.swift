import Foundation

/// JSON that a `FuzzedDecoder` generated for a type, and that may be invalid when it is written.
final class FuzzedNode {
  indirect enum Content {
    /// Not requested yet.
    case open
    case null
    case boolean(Bool)
    /// As it is written: any length, any notation.
    case number(String)
    /// The bytes between the quotes, escapes included.
    case string([UInt8])
    case array([FuzzedNode])
    case object([(key: String, value: FuzzedNode)])
    /// Any bytes in place of the value.
    case raw([UInt8])
  }

  var content = Content.open
  /// How often an array's first element is written.
  var repetitions = 1

  init(_ content: Content = .open) { self.content = content }

  /// The bytes up to a limit, because repetitions may be nested.
  func written(limit: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    write(to: &bytes, limit)
    return bytes
  }

  private func write(to bytes: inout [UInt8], _ limit: Int) {
    guard bytes.count < limit else { return }
    switch content {
    case .open: bytes += Array("{}".utf8)
    case .null: bytes += Array("null".utf8)
    case .boolean(let flag): bytes += Array((flag ? "true" : "false").utf8)
    case .number(let digits): bytes += Array(digits.utf8)
    case .string(let text): Self.quote(text, to: &bytes)
    case .raw(let raw): bytes += raw
    case .array(let elements):
      bytes.append(UInt8(ascii: "["))
      for (index, element) in elements.enumerated() {
        for copy in 0..<(index == 0 ? repetitions : 1) {
          guard bytes.count < limit else { return }
          if index > 0 || copy > 0 { bytes.append(UInt8(ascii: ",")) }
          element.write(to: &bytes, limit)
        }
      }
      bytes.append(UInt8(ascii: "]"))
    case .object(let members):
      bytes.append(UInt8(ascii: "{"))
      for (index, member) in members.enumerated() {
        if index > 0 { bytes.append(UInt8(ascii: ",")) }
        Self.quote(Self.escaped(member.key), to: &bytes)
        bytes.append(UInt8(ascii: ":"))
        member.value.write(to: &bytes, limit)
      }
      bytes.append(UInt8(ascii: "}"))
    }
  }

  private static func quote(_ text: [UInt8], to bytes: inout [UInt8]) {
    bytes.append(UInt8(ascii: "\""))
    bytes += text
    bytes.append(UInt8(ascii: "\""))
  }

  static func escaped(_ text: String) -> [UInt8] {
    var bytes: [UInt8] = []
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
      case 0..<0x20: bytes += Array(String(format: "\\u%04x", byte).utf8)
      default: bytes.append(byte)
      }
    }
    return bytes
  }

  /// The node and all its descendants.
  var everything: [FuzzedNode] {
    switch content {
    case .array(let elements): [self] + elements.flatMap(\.everything)
    case .object(let members): [self] + members.flatMap(\.value.everything)
    case .open, .null, .boolean, .number, .string, .raw: [self]
    }
  }
}
