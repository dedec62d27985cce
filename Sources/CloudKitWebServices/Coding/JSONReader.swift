import Foundation

/// Decodes JSON directly from bytes, for frequent requests and replies.
///
/// It accepts common input only and throws `FallbackToJSONDecoder` for everything else, including errors: then
/// `JSONDecoder` decodes the same bytes and decides what they mean or reports what is wrong.
/// Any input that this reader accepts must therefore mean the same to `JSONDecoder`, so it has to be
/// strict.
package struct JSONReader {
  /// Input that has to be decoded by `JSONDecoder`.
  package struct FallbackToJSONDecoder: Error {
    package init() {}
  }

  private let bytes: [UInt8]
  private var index = 0

  private static let depthLimit = 64
  /// More members than any of the types has; their names are compared one by one.
  private static let memberLimit = 32

  let origin: WireCoding.Origin

  package init(_ json: Data, _ origin: WireCoding.Origin = .wire) {
    bytes = [UInt8](json)
    self.origin = origin
  }

  // MARK: Structure

  /// The members of an object that were read so far.
  package struct Members {
    fileprivate var names: [String] = []
    fileprivate var isOpen = false
    /// Whether repeated names are refused here, rather than by the caller.
    fileprivate var isChecked = true

    package init() {}

    /// The members of an object with any number of names; the caller refuses repeated ones.
    static let unchecked = {
      var members = Members()
      members.isChecked = false
      return members
    }()
  }

  /// The name of the next member, whose value must be read next; nil at the object's end.
  package mutating func next(_ members: inout Members) throws(FallbackToJSONDecoder) -> String? {
    guard try proceed(&members.isOpen, UInt8(ascii: "{"), UInt8(ascii: "}")) else { return nil }
    let name = try string()
    try take(UInt8(ascii: ":"))
    guard members.isChecked else { return name }
    // `JSONDecoder` decides which of two equal names counts.
    guard members.names.count < Self.memberLimit, !members.names.contains(name) else {
      throw FallbackToJSONDecoder()
    }
    members.names.append(name)
    return name
  }

  /// Whether another element follows; the first call opens the array.
  mutating func hasElement(_ isOpen: inout Bool) throws(FallbackToJSONDecoder) -> Bool {
    try proceed(&isOpen, UInt8(ascii: "["), UInt8(ascii: "]"))
  }

  private mutating func proceed(
    _ isOpen: inout Bool,
    _ opening: UInt8,
    _ closing: UInt8
  ) throws(FallbackToJSONDecoder) -> Bool {
    let isFirst = !isOpen
    if isFirst {
      try take(opening)
      isOpen = true
    }
    let byte = try peek()
    if byte == closing {
      index += 1
      return false
    }
    if !isFirst { try take(UInt8(ascii: ",")) }
    return true
  }

  /// Throws if anything follows the value.
  mutating func end() throws(FallbackToJSONDecoder) {
    skipSpace()
    guard index == bytes.count else { throw FallbackToJSONDecoder() }
  }

  private mutating func skipSpace() {
    while index < bytes.count {
      switch bytes[index] {
      case 0x20, 0x0A, 0x0D, 0x09: index += 1
      default: return
      }
    }
  }

  private func isNext(_ byte: UInt8) -> Bool { index < bytes.count && bytes[index] == byte }

  /// The first byte of the next token.
  mutating func peek() throws(FallbackToJSONDecoder) -> UInt8 {
    if index < bytes.count, bytes[index] > 0x20 { return bytes[index] }
    skipSpace()
    guard index < bytes.count else { throw FallbackToJSONDecoder() }
    return bytes[index]
  }

  private mutating func take(_ byte: UInt8) throws(FallbackToJSONDecoder) {
    guard try peek() == byte else { throw FallbackToJSONDecoder() }
    index += 1
  }

  // MARK: Skipping and seeking

  /// Skips a value and returns its position.
  mutating func skip() throws(FallbackToJSONDecoder) -> Int {
    _ = try peek()
    let place = index
    try skip(depth: 0)
    return place
  }

  /// Reads at the position of a skipped value, and returns to the current position.
  mutating func reading<Value>(
    at place: Int,
    _ read: (inout JSONReader) throws(FallbackToJSONDecoder) -> Value
  ) throws(FallbackToJSONDecoder) -> Value {
    let here = index
    index = place
    let value = try read(&self)
    index = here
    return value
  }

  /// Reads a value with the given function, or with `JSONDecoder` if that throws.
  mutating func value<Value: Decodable>(
    _ usual: (inout JSONReader) throws(FallbackToJSONDecoder) -> Value
  ) throws(FallbackToJSONDecoder) -> Value {
    let place = index
    do throws(FallbackToJSONDecoder) {
      return try usual(&self)
    } catch {
      index = place
      let start = try skip()
      let json = Data(bytes[start..<index])
      guard let value = try? WireCoding.decoder(of: json, origin).decode(Value.self, from: json)
      else {
        throw error
      }
      return value
    }
  }

  private mutating func skip(depth: Int) throws(FallbackToJSONDecoder) {
    guard depth < Self.depthLimit else { throw FallbackToJSONDecoder() }
    switch try peek() {
    case UInt8(ascii: "\""): _ = try string()
    case UInt8(ascii: "{"):
      var members = Members.unchecked
      while try next(&members) != nil { try skip(depth: depth + 1) }
    case UInt8(ascii: "["):
      var isOpen = false
      while try hasElement(&isOpen) { try skip(depth: depth + 1) }
    case UInt8(ascii: "t"), UInt8(ascii: "f"): _ = try boolean()
    case UInt8(ascii: "n"): try word("null")
    default: _ = try numeral()
    }
  }

  // MARK: Values

  /// Reads `null` if it is the next value.
  mutating func takesNull() throws(FallbackToJSONDecoder) -> Bool {
    guard try peek() == UInt8(ascii: "n") else { return false }
    try word("null")
    return true
  }

  mutating func boolean() throws(FallbackToJSONDecoder) -> Bool {
    let isTrue = try peek() == UInt8(ascii: "t")
    try word(isTrue ? "true" : "false")
    return isTrue
  }

  private mutating func word(_ word: StaticString) throws(FallbackToJSONDecoder) {
    let end = index + word.utf8CodeUnitCount
    let isThere = word.withUTF8Buffer { end <= bytes.count && bytes[index..<end].elementsEqual($0) }
    guard isThere else { throw FallbackToJSONDecoder() }
    index = end
  }

  package mutating func string() throws(FallbackToJSONDecoder) -> String {
    try take(UInt8(ascii: "\""))
    let start = index
    var union: UInt8 = 0
    while index < bytes.count {
      let byte = bytes[index]
      switch byte {
      case UInt8(ascii: "\""):
        defer { index += 1 }
        return union < 0x80 ? ascii(from: start) : try Self.text(bytes[start..<index])
      case UInt8(ascii: "\\"): return try escapedString(from: start)
      case 0..<0x20: throw FallbackToJSONDecoder()
      default:
        union |= byte
        index += 1
      }
    }
    throw FallbackToJSONDecoder()
  }

  /// The bytes were found to be ASCII, so they need no validation as UTF-8.
  private func ascii(from start: Int) -> String {
    bytes.withUnsafeBufferPointer {
      String(decoding: UnsafeBufferPointer(rebasing: $0[start..<index]), as: UTF8.self)
    }
  }

  private static func text(_ utf8: ArraySlice<UInt8>) throws(FallbackToJSONDecoder) -> String {
    // Invalid UTF-8 is left to `JSONDecoder`.
    guard let text = String(validating: utf8, as: UTF8.self) else { throw FallbackToJSONDecoder() }
    return text
  }

  /// Handles the escapes of one letter; `\u` escapes, which are rare, are left to `JSONDecoder`.
  private mutating func escapedString(from start: Int) throws(FallbackToJSONDecoder) -> String {
    var utf8 = Array(bytes[start..<index])
    while index < bytes.count {
      let byte = bytes[index]
      index += 1
      switch byte {
      case UInt8(ascii: "\""): return try Self.text(utf8[...])
      case 0..<0x20: throw FallbackToJSONDecoder()
      case UInt8(ascii: "\\"):
        guard index < bytes.count else { throw FallbackToJSONDecoder() }
        utf8.append(try Self.escaped(bytes[index]))
        index += 1
      default: utf8.append(byte)
      }
    }
    throw FallbackToJSONDecoder()
  }

  private static func escaped(_ letter: UInt8) throws(FallbackToJSONDecoder) -> UInt8 {
    switch letter {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): letter
    case UInt8(ascii: "b"): 0x08
    case UInt8(ascii: "f"): 0x0C
    case UInt8(ascii: "n"): 0x0A
    case UInt8(ascii: "r"): 0x0D
    case UInt8(ascii: "t"): 0x09
    default: throw FallbackToJSONDecoder()
    }
  }

  // MARK: Numbers

  package mutating func integer() throws(FallbackToJSONDecoder) -> Int64 {
    let numeral = try numeral()
    // An integer in another notation, and a zero with a sign, are left to `JSONDecoder`.
    guard numeral.isInteger, let value = Int64(try Self.text(numeral.digits)),
      value != 0 || numeral.digits.count == 1
    else { throw FallbackToJSONDecoder() }
    return value
  }

  mutating func double() throws(FallbackToJSONDecoder) -> Double { try Self.real(numeral()) }

  /// `JSONDecoder` refuses what is too large, or too small, for a `Double`.
  private static func real(_ numeral: Numeral) throws(FallbackToJSONDecoder) -> Double {
    guard let value = Double(try text(numeral.digits)), value.isFinite,
      value != 0 || numeral.isZero
    else { throw FallbackToJSONDecoder() }
    return value
  }

  /// An integer or a fraction, by the number's notation.
  package mutating func untaggedNumber() throws(FallbackToJSONDecoder) -> UntaggedValue {
    let place = index
    let numeral = try numeral()
    guard !numeral.isInteger else {
      index = place
      return .integer(try integer())
    }
    return .fraction(try Self.real(numeral))
  }

  private struct Numeral {
    var digits: ArraySlice<UInt8>
    var isInteger: Bool

    /// Whether no digit before the exponent has a value.
    var isZero: Bool {
      digits.prefix { $0 | 0x20 != UInt8(ascii: "e") }.allSatisfy {
        !(UInt8(ascii: "1")...UInt8(ascii: "9")).contains($0)
      }
    }
  }

  private mutating func numeral() throws(FallbackToJSONDecoder) -> Numeral {
    _ = try peek()
    let start = index
    if isNext(UInt8(ascii: "-")) { index += 1 }
    if isNext(UInt8(ascii: "0")) { index += 1 } else { try digits() }
    let whole = index
    if isNext(UInt8(ascii: ".")) {
      index += 1
      try digits()
    }
    if isNext(UInt8(ascii: "e")) || isNext(UInt8(ascii: "E")) {
      index += 1
      if isNext(UInt8(ascii: "+")) || isNext(UInt8(ascii: "-")) { index += 1 }
      try digits()
    }
    return Numeral(digits: bytes[start..<index], isInteger: index == whole)
  }

  private mutating func digits() throws(FallbackToJSONDecoder) {
    let start = index
    while index < bytes.count, (0x30...0x39).contains(bytes[index]) { index += 1 }
    guard index > start else { throw FallbackToJSONDecoder() }
  }
}

extension JSONReader {
  mutating func optional<Value>(
    _ read: (inout JSONReader) throws(FallbackToJSONDecoder) -> Value
  ) throws(FallbackToJSONDecoder) -> Value? {
    try takesNull() ? nil : try read(&self)
  }

  mutating func list<Element>(
    _ read: (inout JSONReader) throws(FallbackToJSONDecoder) -> Element
  ) throws(FallbackToJSONDecoder) -> [Element] {
    var elements: [Element] = []
    var isOpen = false
    while try hasElement(&isOpen) { elements.append(try read(&self)) }
    return elements
  }

  /// A string of a fixed list.
  mutating func word<Word: RawRepresentable<String>>(
    _: Word.Type
  ) throws(FallbackToJSONDecoder) -> Word {
    guard let word = Word(rawValue: try string()) else { throw FallbackToJSONDecoder() }
    return word
  }
}
