import Foundation

/// The places of numbers that JSON writes with a point or an exponent, such as `2.0`.
///
/// `JSONDecoder` decodes `2.0` as an integer too and does not say how it was written. Without a type
/// tag only the notation distinguishes a client's floating-point number from an integer, and that
/// makes the type of a new field.
struct WholeFractions: Sendable {
  /// Hashes of coding paths: a path is longer than the number at its end.
  private var places: Set<Int> = []

  /// Finds the places in JSON, or returns nil if there are none.
  ///
  /// Text that is no JSON is left to the decoder.
  init?(in json: Data) {
    json.withUnsafeBytes { bytes in
      var scan = Scan(bytes: bytes)
      scan.read(&places)
    }
    if places.isEmpty { return nil }
  }

  func contains(_ path: [any CodingKey]) -> Bool {
    var hasher = Hasher()
    for key in path { hasher.combine(key.stringValue) }
    return places.contains(hasher.finalize())
  }

  /// One pass over the bytes, with a stack of the open objects and arrays.
  private struct Scan {
    private enum Frame {
      /// The name of the member that is being read; nil before it.
      case object(String?)
      case array(Int)

      /// As `JSONDecoder` names the place.
      var key: String {
        switch self {
        case .object(let name): name ?? ""
        case .array(let index): "Index \(index)"
        }
      }
    }

    let bytes: UnsafeRawBufferPointer
    private var index = 0
    private var frames: [Frame] = []

    init(bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    mutating func read(_ places: inout Set<Int>) {
      while index < bytes.count {
        switch bytes[index] {
        case UInt8(ascii: "{"): frames.append(.object(nil))
        case UInt8(ascii: "["): frames.append(.array(0))
        case UInt8(ascii: "}"), UInt8(ascii: "]"): _ = frames.popLast()
        case UInt8(ascii: ","): nextElement()
        case UInt8(ascii: "\""):
          string()
          continue
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
          if isFraction() { places.insert(place()) }
          continue
        default: break
        }
        index += 1
      }
    }

    private func place() -> Int {
      var hasher = Hasher()
      for frame in frames { hasher.combine(frame.key) }
      return hasher.finalize()
    }

    private mutating func nextElement() {
      switch frames.popLast() {
      case .object: frames.append(.object(nil))
      case .array(let number): frames.append(.array(number + 1))
      case nil: break
      }
    }

    /// Passes a number.
    private mutating func isFraction() -> Bool {
      var isFraction = false
      while index < bytes.count {
        switch bytes[index] {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "+"): break
        case UInt8(ascii: "."), UInt8(ascii: "e"), UInt8(ascii: "E"): isFraction = true
        default: return isFraction
        }
        index += 1
      }
      return isFraction
    }

    /// Passes a string, which is a name where an object has none yet.
    private mutating func string() {
      let start = index
      var isEscaped = false
      index += 1
      while index < bytes.count, bytes[index] != UInt8(ascii: "\"") {
        if bytes[index] == UInt8(ascii: "\\") {
          isEscaped = true
          index += 1
        }
        index += 1
      }
      index = min(index + 1, bytes.count)
      guard case .object(nil)? = frames.last else { return }
      frames.removeLast()
      frames.append(.object(text(start..<index, isEscaped: isEscaped)))
    }

    /// The text of a string with its quotes.
    private func text(_ range: Range<Int>, isEscaped: Bool) -> String {
      let literal = bytes[range]
      if isEscaped, let text = try? JSONDecoder().decode(String.self, from: Data(literal)) {
        return text
      }
      return String(decoding: literal.dropFirst().dropLast(), as: UTF8.self)
    }
  }
}
