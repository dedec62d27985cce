/// The limit of combining marks in a row in texts of clients.
///
/// Swift normalizes text beyond ASCII when it hashes or compares it, and sorts each run of combining
/// marks by insertion: a run of n marks takes up to n² steps, a second for 60 KB. Unicode's
/// stream-safe format (UAX #15, 13) has 30 marks in a row at most, and texts of people have fewer.
package enum CombiningMarks {
  /// The marks in a row that a text may have.
  package static let runLimit = 128

  /// Whether the text has more marks in a row than the limit.
  package static func areTooMany(in text: some StringProtocol) -> Bool {
    guard text.utf8.contains(where: { $0 >= 0x80 }) else { return false }
    var count = 0
    for scalar in text.unicodeScalars {
      count = isMark(scalar) ? count + 1 : 0
      if count > runLimit { return true }
    }
    return false
  }

  /// Whether normalization sorts the scalar, or what it decomposes to, among its neighbours.
  static func isMark(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    // Latin letters, Chinese characters and Korean syllables, which most text consists of.
    case 0..<0x0300, 0x3400..<0xA000, 0xAC00..<0xD800: false
    // Vowels of Tibetan in two parts: their own class is zero, those of the parts are not.
    case 0x0F73, 0x0F75, 0x0F81: true
    default: scalar.properties.canonicalCombiningClass != .notReordered
    }
  }
}
