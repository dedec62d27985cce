import Foundation

/// How a sort descriptor orders strings.
///
/// Other values have one order only.
///
/// Apple names these by selectors, `caseInsensitiveCompare:` and so on, which Swift on Linux does
/// not have.
public enum SortOrdering: String, Sendable, Hashable, CaseIterable {
  /// Code point order, as `compare:`.
  case literal = "compare:"
  /// As `caseInsensitiveCompare:`.
  case caseInsensitive = "caseInsensitiveCompare:"
  /// People's alphabet, as `localizedCompare:`.
  case localized = "localizedCompare:"
  /// As `localizedCaseInsensitiveCompare:`.
  case localizedCaseInsensitive = "localizedCaseInsensitiveCompare:"
  /// As file managers order names, numbers by their value, as `localizedStandardCompare:`.
  case localizedStandard = "localizedStandardCompare:"

  /// A string whose code point order is this ordering.
  ///
  /// Memory sorts by this key and SQL by a function that calls it, so the two cannot differ. It
  /// depends on no locale of the machine: a store sorts the same way everywhere.
  package func key(_ string: String) -> String {
    switch self {
    case .literal: return string
    case .caseInsensitive: return StringComparison(.caseInsensitive).folded(string)
    case .localized: return Self.levels(string, numbers: false, upToCase: true)
    case .localizedCaseInsensitive: return Self.levels(string, numbers: false, upToCase: false)
    case .localizedStandard: return Self.levels(string, numbers: true, upToCase: true)
    }
  }

  /// Letters first, then diacritics, then case with small letters before capitals.
  private static func levels(_ string: String, numbers: Bool, upToCase: Bool) -> String {
    let letters = StringComparison([.caseInsensitive, .diacriticInsensitive]).folded(string)
    let diacritics = StringComparison(.caseInsensitive).folded(string)
    var key = (numbers ? padded(letters) : letters) + "\u{1}" + diacritics
    if upToCase {
      key += "\u{1}"
      // Capitals sort before small letters by code point; the marks turn that round.
      key.unicodeScalars.append(
        contentsOf: string.unicodeScalars.map { $0.properties.isUppercase ? "b" : "a" }
      )
    }
    return key
  }

  /// Gives runs of digits a length mark, so that 9 sorts before 10.
  private static func padded(_ string: String) -> String {
    var result = ""
    var digits = ""
    func flush() {
      guard !digits.isEmpty else { return }
      let significant = digits.drop { $0 == "0" }
      // The mark keeps its place among digits; a run longer than a mark counts is cut there.
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
