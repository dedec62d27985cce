import Foundation

/// How a sort descriptor orders strings.
///
/// Other values have one order only.
///
/// Apple names these by selectors, `caseInsensitiveCompare:` and so on, which Swift on Linux does
/// not have.
///
/// **Differs from Core Data:** the localized orders are the same on all machines, those of no language's
/// alphabet: letters without their diacritics by code point, then diacritics, then case. In English
/// Apple's collation has ø and ł beside o and l, in Swedish å, ä and ö behind z; it has hiragana and
/// katakana interleaved, and signs before letters.
public enum SortOrdering: String, Sendable, Hashable, CaseIterable {
  /// Code point order, as `compare:`.
  case literal = "compare:"
  /// The order of `caseInsensitiveCompare:`.
  case caseInsensitive = "caseInsensitiveCompare:"
  /// Letters, then diacritics, then case, in place of `localizedCompare:`.
  case localized = "localizedCompare:"
  /// Letters, then diacritics, in place of `localizedCaseInsensitiveCompare:`.
  case localizedCaseInsensitive = "localizedCaseInsensitiveCompare:"
  /// The localized order with numbers sorted by value, in place of `localizedStandardCompare:`.
  case localizedStandard = "localizedStandardCompare:"

  /// A string whose code point order is this ordering.
  ///
  /// Memory sorts by this key and SQL by a function that calls it, so both orders are equal. It
  /// does not depend on the machine's locale: a store sorts the same way everywhere.
  package func key(_ string: String) -> String {
    switch self {
    case .literal: return string
    case .caseInsensitive: return StringComparison(.caseInsensitive).folded(string)
    case .localized: return Self.levels(string, numbers: false, upToCase: true)
    case .localizedCaseInsensitive: return Self.levels(string, numbers: false, upToCase: false)
    case .localizedStandard: return Self.levels(string, numbers: true, upToCase: true)
    }
  }

  /// The levels: letters first, then diacritics, then case with lower case first.
  private static func levels(_ string: String, numbers: Bool, upToCase: Bool) -> String {
    let letters = StringComparison([.caseInsensitive, .diacriticInsensitive]).folded(string)
    let diacritics = StringComparison(.caseInsensitive).folded(string)
    var key = (numbers ? padded(letters) : letters) + "\u{1}" + diacritics
    if upToCase {
      key += "\u{1}"
      // Upper case precedes lower case by code point; these marks reverse that.
      key.unicodeScalars.append(
        contentsOf: string.unicodeScalars.map { $0.properties.isUppercase ? "b" : "a" }
      )
    }
    return key
  }

  /// Prefixes runs of digits with their length, so that 9 sorts before 10.
  private static func padded(_ string: String) -> String {
    var result = ""
    var digits = ""
    func flush() {
      guard !digits.isEmpty else { return }
      let significant = digits.drop { $0 == "0" }
      // The prefix sorts as a digit; a run with more digits than the prefix can express is
      // truncated.
      let length = min(significant.count, 999)
      result += "0" + String(repeating: "0", count: 3 - String(length).count) + String(length)
      result += significant
      digits = ""
    }
    for character in string {
      if character.isASCII, character.isNumber {
        digits.append(character)
      } else {
        flush()
        result.append(character)
      }
    }
    flush()
    return result
  }
}
