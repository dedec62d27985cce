import Foundation

/// Writes JSON directly into bytes, for frequent requests and replies.
///
/// The bytes equal those of `WireCoding.encode`; a value that is JSON already can be inserted
/// unchanged.
package struct JSONWriter: ~Copyable {
  /// Manually allocated memory, which `finished()` hands over: an array would check for unique
  /// ownership at each of the many small writes.
  private var memory: UnsafeMutableRawPointer
  private var capacity: Int
  /// The number of bytes written so far.
  package private(set) var count = 0
  private var needsComma = false
  /// Whether JSON could express every value so far.
  package private(set) var isExact = true

  package init(capacity: Int = 256) {
    self.capacity = max(capacity, 64)
    memory = .allocate(byteCount: self.capacity, alignment: 1)
  }

  deinit { memory.deallocate() }

  /// The written bytes, without a copy.
  package consuming func finished() -> Data {
    let data = Data(
      bytesNoCopy: memory,
      count: count,
      deallocator: .custom { memory, _ in memory.deallocate() }
    )
    discard self
    return data
  }

  // MARK: Memory

  /// Grows the buffer for the next write.
  package mutating func reserve(_ more: Int) {
    guard capacity - count < more else { return }
    capacity = max(capacity * 2, count + more)
    let larger = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 1)
    larger.copyMemory(from: memory, byteCount: count)
    memory.deallocate()
    memory = larger
  }

  private mutating func append(_ byte: UInt8) {
    reserve(1)
    memory.storeBytes(of: byte, toByteOffset: count, as: UInt8.self)
    count += 1
  }

  private mutating func append(_ bytes: UnsafeRawBufferPointer) {
    guard let start = bytes.baseAddress else { return }
    reserve(bytes.count)
    (memory + count).copyMemory(from: start, byteCount: bytes.count)
    count += bytes.count
  }

  private mutating func append(_ text: StaticString) {
    append(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  // MARK: Undoing

  /// A position in the output, to discard what is written after it.
  package struct Mark {
    fileprivate var count: Int
    fileprivate var needsComma: Bool
  }

  package var mark: Mark { Mark(count: count, needsComma: needsComma) }

  package mutating func takeBack(to mark: Mark) {
    count = mark.count
    needsComma = mark.needsComma
  }

  // MARK: Structure

  package mutating func beginObject() {
    separate()
    append(UInt8(ascii: "{"))
  }

  package mutating func endObject() {
    append(UInt8(ascii: "}"))
    needsComma = true
  }

  package mutating func beginArray() {
    separate()
    append(UInt8(ascii: "["))
  }

  package mutating func endArray() {
    append(UInt8(ascii: "]"))
    needsComma = true
  }

  package mutating func key(_ name: String) {
    string(name)
    append(UInt8(ascii: ":"))
    needsComma = false
  }

  private mutating func separate() {
    if needsComma { append(UInt8(ascii: ",")) }
    needsComma = false
  }

  // MARK: Values

  /// A value that is JSON already.
  package mutating func encoded(_ json: Data) {
    json.withUnsafeBytes { encoded($0) }
  }

  package mutating func encoded(_ json: UnsafeRawBufferPointer) {
    separate()
    append(json)
    needsComma = true
  }

  /// Inserts the members of an object that is JSON already into the current object.
  package mutating func members(of json: Data) {
    let inner = json.dropFirst().dropLast()
    if !inner.isEmpty { encoded(inner) }
  }

  package mutating func null() { word("null") }
  package mutating func boolean(_ value: Bool) { word(value ? "true" : "false") }

  package mutating func integer(_ value: Int64) {
    separate()
    digits(value)
    needsComma = true
  }

  /// A number that is not finite has no form in JSON, and is written as null.
  package mutating func number(_ value: Double) {
    guard value.isFinite else {
      isExact = false
      return null()
    }
    let text = value.description
    separate()
    inside(of: text.hasSuffix(".0") ? String(text.dropLast(2)) : text)
    needsComma = true
  }

  private mutating func word(_ text: StaticString) {
    separate()
    append(text)
    needsComma = true
  }

  package mutating func string(_ text: String) {
    separate()
    append(UInt8(ascii: "\""))
    inside(of: text)
    append(UInt8(ascii: "\""))
    needsComma = true
  }

  private mutating func inside(of text: String) {
    var text = text
    text.withUTF8 { self.text(UnsafeRawBufferPointer($0)) }
  }

  // MARK: Fragments

  /// Appends a fragment of JSON with its own punctuation, for objects that are written often.
  ///
  /// Its last character decides whether a comma has to follow.
  package mutating func piece(_ json: StaticString) {
    append(json)
    switch memory.load(fromByteOffset: count - 1, as: UInt8.self) {
    case UInt8(ascii: ":"), UInt8(ascii: "{"), UInt8(ascii: "["), UInt8(ascii: ","):
      needsComma = false
    default: needsComma = true
    }
  }

  /// The contents of a string whose quotes are in the surrounding fragments.
  package mutating func text(_ utf8: UnsafeRawBufferPointer) {
    var start = 0
    for index in utf8.indices where Self.needsEscape(utf8[index]) {
      append(UnsafeRawBufferPointer(rebasing: utf8[start..<index]))
      escape(utf8[index])
      start = index + 1
    }
    append(UnsafeRawBufferPointer(rebasing: utf8[start...]))
  }

  /// An integer between fragments.
  package mutating func digits(_ value: Int64) {
    reserve(20)
    var rest = value.magnitude
    if value < 0 { append(UInt8(ascii: "-")) }
    var length = 1
    var limit = rest
    while limit > 9 {
      limit /= 10
      length += 1
    }
    for place in (0..<length).reversed() {
      let digit = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
      memory.storeBytes(of: digit, toByteOffset: count + place, as: UInt8.self)
      rest /= 10
    }
    count += length
  }

  private static func needsEscape(_ byte: UInt8) -> Bool {
    byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
  }

  private mutating func escape(_ byte: UInt8) {
    switch byte {
    case UInt8(ascii: "\""): append(#"\""#)
    case UInt8(ascii: "\\"): append(#"\\"#)
    case 0x08: append(#"\b"#)
    case 0x0C: append(#"\f"#)
    case 0x0A: append(#"\n"#)
    case 0x0D: append(#"\r"#)
    case 0x09: append(#"\t"#)
    default:
      let digits = Array("0123456789abcdef".utf8)
      append(#"\u00"#)
      append(digits[Int(byte >> 4)])
      append(digits[Int(byte & 15)])
    }
  }
}
