import Foundation

/// `folding(options:locale:)` in time proportional to the length.
///
/// Foundation's function replaces each cluster that becomes shorter within the whole text and moves
/// the rest, so a text of n letters with accents takes n² steps: 46 seconds for 2.4 MB.
extension String {
  /// The text without the differences that the options ignore, in no language: equal to
  /// `folding(options:locale:)` with no locale, except in a run of several hundred combining marks.
  package func foldedInPieces(_ options: CompareOptions) -> String {
    // ASCII has no diacritics and no widths, and its case is one bit.
    if utf8.allSatisfy({ $0 < 0x80 }) {
      return options.contains(.caseInsensitive) ? lowercased() : self
    }
    return foldedInPieces(options, of: 256, atMost: 1024)
  }

  /// Folds pieces of this many bytes, which end before a base character, or at the longest size.
  package func foldedInPieces(
    _ options: CompareOptions,
    of size: Int,
    atMost longest: Int
  ) -> String {
    guard utf8.count > size else { return folding(options: options, locale: nil) }
    var result = ""
    result.reserveCapacity(utf8.count)
    let scalars = unicodeScalars
    var start = scalars.startIndex
    var length = 0
    for index in scalars.indices {
      let scalar = scalars[index]
      if length >= size, scalar.isBase || length >= longest {
        result += String(scalars[start..<index]).folding(options: options, locale: nil)
        start = index
        length = 0
      }
      length += UTF8.width(scalar)
    }
    return result + String(scalars[start...]).folding(options: options, locale: nil)
  }
}

extension Unicode.Scalar {
  /// Whether the scalar belongs to no cluster before it: ASCII and letters that extend nothing.
  fileprivate var isBase: Bool {
    if isASCII { return true }
    switch properties.generalCategory {
    case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .otherLetter:
      return !properties.isGraphemeExtend
    default: return false
    }
  }
}
