import Foundation

/// The numbers of values that JSON of a client may have, checked before a decoder reads it.
///
/// A value has as few as two bytes of JSON and takes tens to hundreds of bytes when it is decoded,
/// so a limit of a body's bytes alone does not limit the memory. The check allocates nothing for
/// each value and takes time in proportion to the bytes.
package struct JSONBounds: Hashable, Sendable {
  /// The limit of the arrays of one member.
  package struct ArrayLimit: Hashable, Sendable {
    /// Elements of each array.
    package var elements: Int
    /// Elements of all these arrays of a body together.
    package var inAll: Int

    package init(_ elements: Int, inAll: Int = .max) {
      self.elements = elements
      self.inAll = inAll
    }
  }

  /// Limits by the name of the member that has the array, or by the names of its object's member
  /// and of itself, such as `fieldValue.value`; the latter is preferred.
  package var arrays: [String: ArrayLimit]
  /// Elements of each other array.
  package var otherArrays: Int
  /// All values of a body: members of objects and elements of arrays.
  package var values: Int
  /// Combining marks in a row in each text and name.
  package var marksInARow = CombiningMarks.runLimit
  /// Bytes of each member's name, and of the texts of ``names``, as written in JSON.
  package var nameBytes = Int.max
  /// The members whose texts, or elements that are texts, are names.
  package var names: Set<String> = []

  package init(arrays: [String: ArrayLimit], otherArrays: Int, values: Int) {
    self.arrays = arrays
    self.otherArrays = otherArrays
    self.values = values
  }

  /// Why JSON is refused.
  package enum Refusal: Error, Hashable, Sendable {
    /// It is not JSON in UTF-8.
    case malformed
    /// An array, by the name of its member, has more elements than the limit.
    case array(String, limit: Int)
    /// The arrays of a member have more elements together than the limit.
    case arrays(String, limit: Int)
    /// The whole has more values than the limit.
    case values(limit: Int)
    /// A text has more combining marks in a row than the limit.
    case marks(limit: Int)
    /// A name has more bytes than the limit.
    case name(limit: Int)
  }

  /// Throws for JSON that has more than these numbers; text that is no JSON is refused at its first
  /// error.
  package func check(_ json: Data) throws(Refusal) {
    let outcome = json.withUnsafeBytes { bytes -> Result<Void, Refusal> in
      var survey = JSONSurvey(bytes, self)
      do throws(Refusal) {
        return .success(try survey.read())
      } catch {
        return .failure(error)
      }
    }
    try outcome.get()
  }

  /// Whether a text is JSON with any number of values, and in UTF-8.
  static func isJSON(_ json: Data) -> Bool {
    var bounds = JSONBounds(arrays: [:], otherArrays: .max, values: .max)
    bounds.refusesHalfPairs = true
    bounds.marksInARow = .max
    do throws(Refusal) {
      try bounds.check(json)
    } catch {
      return false
    }
    return true
  }

  /// Whether half of a surrogate pair, which no string can hold, is refused too.
  fileprivate var refusesHalfPairs = false
}

/// Reads JSON once, without building values: a loop with a stack of the open objects and arrays.
private struct JSONSurvey {
  private struct Frame {
    var isArray: Bool
    /// The name of the member that is being read; empty for an array.
    var name: Range<Int>
    /// The same name without its escapes, if it has any.
    var plainName: String?
    /// Elements so far, and their limit.
    var count = 0
    var limit = Int.max
    /// The key of the array's limit, if it has one of its own.
    var key: String?
  }

  private enum Step { case value, firstMember, firstElement, next }

  private let bytes: UnsafeRawBufferPointer
  private let bounds: JSONBounds
  private var index = 0
  private var values = 0
  private var frames: [Frame] = []
  private var sums: [String: Int] = [:]
  /// Combining marks before the index, in a row.
  private var marks = 0
  /// Whether the text that was read last has escapes.
  private var hasEscapes = false

  /// The depth to which `JSONDecoder` reads.
  private static let depthLimit = 512

  init(_ bytes: UnsafeRawBufferPointer, _ bounds: JSONBounds) {
    self.bytes = bytes
    self.bounds = bounds
  }

  mutating func read() throws(JSONBounds.Refusal) {
    if bytes.count >= 3, bytes[0] == 0xEF, bytes[1] == 0xBB, bytes[2] == 0xBF { index = 3 }
    var step = Step.value
    while true {
      skipSpace()
      switch step {
      case .value: step = try value()
      case .firstMember:
        step = try isNext(UInt8(ascii: "}")) ? close() : member()
      case .firstElement:
        step = try isNext(UInt8(ascii: "]")) ? close() : element()
      case .next:
        guard let frame = frames.last else {
          guard index == bytes.count else { throw .malformed }
          return
        }
        if isNext(UInt8(ascii: ",")) {
          index += 1
          skipSpace()
          step = try frame.isArray ? element() : member()
        } else if isNext(frame.isArray ? UInt8(ascii: "]") : UInt8(ascii: "}")) {
          step = close()
        } else {
          throw .malformed
        }
      }
    }
  }

  // MARK: Structure

  private mutating func value() throws(JSONBounds.Refusal) -> Step {
    guard index < bytes.count else { throw .malformed }
    values += 1
    guard values <= bounds.values else { throw .values(limit: bounds.values) }
    switch bytes[index] {
    case UInt8(ascii: "{"):
      try open(Frame(isArray: false, name: 0..<0))
      return .firstMember
    case UInt8(ascii: "["):
      try open(array())
      return .firstElement
    case UInt8(ascii: "\""):
      let text = try string()
      guard text.count <= bounds.nameBytes || !isName else { throw .name(limit: bounds.nameBytes) }
    case UInt8(ascii: "t"): try word("true")
    case UInt8(ascii: "f"): try word("false")
    case UInt8(ascii: "n"): try word("null")
    default: try number()
    }
    return .next
  }

  /// The frame of an array, with the limit for its member.
  private func array() -> Frame {
    var frame = Frame(isArray: true, name: 0..<0)
    frame.limit = bounds.otherArrays
    guard let object = frames.last, !object.isArray else { return frame }
    let name = self.name(in: object)
    var keys = [name]
    if frames.count > 1, !frames[frames.count - 2].isArray {
      keys.insert("\(self.name(in: frames[frames.count - 2])).\(name)", at: 0)
    }
    for key in keys {
      guard let limit = bounds.arrays[key] else { continue }
      frame.limit = limit.elements
      frame.key = key
      break
    }
    return frame
  }

  private mutating func open(_ frame: Frame) throws(JSONBounds.Refusal) {
    guard frames.count < Self.depthLimit else { throw .malformed }
    frames.append(frame)
    index += 1
  }

  private mutating func close() -> Step {
    frames.removeLast()
    index += 1
    return .next
  }

  private mutating func element() throws(JSONBounds.Refusal) -> Step {
    let last = frames.count - 1
    frames[last].count += 1
    guard frames[last].count <= frames[last].limit else {
      throw .array(name(of: last), limit: frames[last].limit)
    }
    if let key = frames[last].key, let limit = bounds.arrays[key]?.inAll, limit != .max {
      sums[key, default: 0] += 1
      guard sums[key, default: 0] <= limit else { throw .arrays(name(of: last), limit: limit) }
    }
    return .value
  }

  private mutating func member() throws(JSONBounds.Refusal) -> Step {
    let name = try string()
    guard name.count <= bounds.nameBytes else { throw .name(limit: bounds.nameBytes) }
    frames[frames.count - 1].name = name
    // A name that is longer with six bytes for each character is none of ours.
    let isShort = name.count <= 6 * Self.longestName
    frames[frames.count - 1].plainName =
      hasEscapes && isShort ? JSONEscapes.resolvingASCII(in: bytes[name]) : nil
    skipSpace()
    guard isNext(UInt8(ascii: ":")) else { throw .malformed }
    index += 1
    return .value
  }

  /// Whether the text that was read belongs to a member whose texts are names.
  private var isName: Bool {
    guard let last = frames.indices.last else { return false }
    return bounds.names.contains(frames[last].isArray ? name(of: last) : name(in: frames[last]))
  }

  /// The name of an array's member, for the reason of a refusal.
  private func name(of frame: Int) -> String {
    frame > 0 && !frames[frame - 1].isArray ? name(in: frames[frame - 1]) : ""
  }

  /// The name of the member that an object is at.
  private func name(in object: Frame) -> String {
    object.plainName
      ?? String(decoding: bytes[object.name.prefix(Self.longestName)], as: UTF8.self)
  }

  /// No name of a bound has more bytes.
  private static let longestName = 64

  // MARK: Tokens

  private func isNext(_ byte: UInt8) -> Bool { index < bytes.count && bytes[index] == byte }

  private mutating func skipSpace() {
    while index < bytes.count {
      switch bytes[index] {
      case 0x20, 0x0A, 0x0D, 0x09: index += 1
      default: return
      }
    }
  }

  private mutating func word(_ word: StaticString) throws(JSONBounds.Refusal) {
    let end = index + word.utf8CodeUnitCount
    let isThere = word.withUTF8Buffer { end <= bytes.count && bytes[index..<end].elementsEqual($0) }
    guard isThere else { throw .malformed }
    index = end
  }

  private mutating func number() throws(JSONBounds.Refusal) {
    if isNext(UInt8(ascii: "-")) { index += 1 }
    if isNext(UInt8(ascii: "0")) { index += 1 } else { try digits() }
    if isNext(UInt8(ascii: ".")) {
      index += 1
      try digits()
    }
    guard isNext(UInt8(ascii: "e")) || isNext(UInt8(ascii: "E")) else { return }
    index += 1
    if isNext(UInt8(ascii: "+")) || isNext(UInt8(ascii: "-")) { index += 1 }
    try digits()
  }

  private mutating func digits() throws(JSONBounds.Refusal) {
    let start = index
    while index < bytes.count, (0x30...0x39).contains(bytes[index]) { index += 1 }
    guard index > start else { throw .malformed }
  }

  /// Reads a string and returns the place of its text.
  private mutating func string() throws(JSONBounds.Refusal) -> Range<Int> {
    guard isNext(UInt8(ascii: "\"")) else { throw .malformed }
    index += 1
    let start = index
    marks = 0
    hasEscapes = false
    while index < bytes.count {
      switch bytes[index] {
      case UInt8(ascii: "\""):
        index += 1
        return start..<index - 1
      case UInt8(ascii: "\\"): try escape()
      case 0..<0x20: throw .malformed
      case 0x80...0xFF: try character()
      default:
        index += 1
        marks = 0
      }
    }
    throw .malformed
  }

  /// Counts a scalar of a text; half of a pair is none.
  private mutating func count(_ value: UInt32) throws(JSONBounds.Refusal) {
    guard let scalar = Unicode.Scalar(value), CombiningMarks.isMark(scalar) else {
      marks = 0
      return
    }
    marks += 1
    guard marks <= bounds.marksInARow else { throw .marks(limit: bounds.marksInARow) }
  }

  /// Reads a character of several bytes in UTF-8 (RFC 3629, 4).
  private mutating func character() throws(JSONBounds.Refusal) {
    let length: Int
    // The second byte excludes longer forms than needed, halves of pairs, and what is beyond U+10FFFF.
    var second: ClosedRange<UInt8> = 0x80...0xBF
    switch bytes[index] {
    case 0xC2...0xDF: length = 2
    case 0xE0: (length, second) = (3, 0xA0...0xBF)
    case 0xED: (length, second) = (3, 0x80...0x9F)
    case 0xE1...0xEF: length = 3
    case 0xF0: (length, second) = (4, 0x90...0xBF)
    case 0xF1...0xF3: length = 4
    case 0xF4: (length, second) = (4, 0x80...0x8F)
    default: throw .malformed
    }
    let end = index + length
    guard end <= bytes.count, second.contains(bytes[index + 1]),
      bytes[index + 2..<end].allSatisfy({ (0x80...0xBF).contains($0) })
    else { throw .malformed }
    // The bits of the first byte after its ones and a zero, and six of each other byte.
    var value = UInt32(bytes[index]) & (0x7F >> UInt32(length))
    for byte in bytes[index + 1..<end] { value = value << 6 | UInt32(byte & 0x3F) }
    index = end
    try count(value)
  }

  private mutating func escape() throws(JSONBounds.Refusal) {
    hasEscapes = true
    index += 1
    guard index < bytes.count else { throw .malformed }
    let letter = bytes[index]
    index += 1
    switch letter {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"),
      UInt8(ascii: "f"), UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
      marks = 0
    case UInt8(ascii: "u"): try count(try escapedScalar())
    default: throw .malformed
    }
  }

  /// Reads what follows `\u`, and the other half of a pair; half of one alone is returned as it is.
  private mutating func escapedScalar() throws(JSONBounds.Refusal) -> UInt32 {
    let unit = try codeUnit()
    guard (0xD800..<0xE000).contains(unit) else { return unit }
    let end = index
    if unit < 0xDC00, isNext(UInt8(ascii: "\\")) {
      index += 1
      if isNext(UInt8(ascii: "u")) {
        index += 1
        let second = try codeUnit()
        if (0xDC00..<0xE000).contains(second) {
          return 0x10000 + (unit - 0xD800) << 10 + (second - 0xDC00)
        }
      }
    }
    guard !bounds.refusesHalfPairs else { throw .malformed }
    index = end
    return unit
  }

  /// The four digits after `\u`.
  private mutating func codeUnit() throws(JSONBounds.Refusal) -> UInt32 {
    guard index + 4 <= bytes.count else { throw .malformed }
    var unit: UInt32 = 0
    for byte in bytes[index..<index + 4] {
      guard let digit = Character(UnicodeScalar(byte)).hexDigitValue else { throw .malformed }
      unit = unit * 16 + UInt32(digit)
    }
    index += 4
    return unit
  }
}
