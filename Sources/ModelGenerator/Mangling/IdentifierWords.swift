/// The words of the identifiers in a mangled symbol so far.
///
/// A repeated word is written as one letter (swift.org, Mangling.rst, "Identifiers").
struct IdentifierWords {
  /// The number of words that a letter can represent.
  private static let limit = 26
  private var words: [[UInt8]] = []

  private static let underscore = UInt8(ascii: "_")

  /// A part of an identifier: literal characters, or a repeated word.
  private enum Piece {
    case letters(ArraySlice<UInt8>)
    case known(Int)
  }

  /// Mangles an identifier and remembers its words.
  mutating func mangle(_ identifier: String) -> String {
    var pieces: [Piece] = []
    var literalStart = 0
    let bytes = Array(identifier.utf8)
    for range in Self.words(of: bytes) {
      let word = Array(bytes[range])
      if let known = words.firstIndex(of: word) {
        if literalStart < range.lowerBound {
          pieces.append(.letters(bytes[literalStart..<range.lowerBound]))
        }
        pieces.append(.known(known))
        literalStart = range.upperBound
      } else if word.count >= 2, words.count < Self.limit {
        words.append(word)
      }
    }
    let endsWithWord = literalStart == bytes.count
    if !endsWithWord { pieces.append(.letters(bytes[literalStart...])) }
    return Self.text(of: pieces, endsWithWord: endsWithWord)
  }

  private static func text(of pieces: [Piece], endsWithWord: Bool) -> String {
    let lastWord = pieces.lastIndex { if case .known = $0 { true } else { false } }
    var text = lastWord == nil ? "" : "0"
    for (index, piece) in pieces.enumerated() {
      switch piece {
      case .letters(let bytes):
        text += "\(bytes.count)" + String(decoding: bytes, as: UTF8.self)
      case .known(let number):
        let base = index == lastWord ? UInt8(ascii: "A") : UInt8(ascii: "a")
        text.unicodeScalars.append(Unicode.Scalar(base + UInt8(number)))
      }
    }
    return endsWithWord && lastWord != nil ? text + "0" : text
  }

  /// Splits an identifier into words.
  ///
  /// A word begins at any character but a digit and an underscore. It ends before an underscore,
  /// and before a capital letter that follows another kind of character.
  private static func words(of bytes: [UInt8]) -> [Range<Int>] {
    var result: [Range<Int>] = []
    var start: Int?
    for position in 0...bytes.count {
      let byte = position < bytes.count ? bytes[position] : 0
      if let begin = start {
        let ends =
          byte == 0 || byte == underscore
          || isCapital(byte) && !isCapital(bytes[position - 1])
        if ends {
          result.append(begin..<position)
          start = nil
        }
      }
      if start == nil, byte != 0, byte != underscore, !isDigit(byte) { start = position }
    }
    return result
  }

  private static func isCapital(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
  }
}
