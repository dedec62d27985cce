import Effects
import Foundation
import Synchronization

/// Compares strings with the options of an operator.
///
/// Without options the UTF-8 bytes are compared, which is code point order and SQLite's BINARY
/// collation. With `c` and `d` both sides are folded first. Memory and SQL call the same functions.
package struct StringComparison: Sendable {
  package let options: StringComparisonOptions

  package init(_ options: StringComparisonOptions) {
    self.options = options
  }

  /// Whether bytes are compared, so that SQL can compare columns directly.
  package var isLiteral: Bool {
    options.contains(.normalized)
      || options.isDisjoint(with: [.caseInsensitive, .diacriticInsensitive])
  }

  /// The string without the differences that the options ignore.
  package func folded(_ string: String) -> String {
    if isLiteral { return string }
    var folding: String.CompareOptions = []
    if options.contains(.caseInsensitive) { folding.insert(.caseInsensitive) }
    if options.contains(.diacriticInsensitive) { folding.insert(.diacriticInsensitive) }
    return string.foldedInPieces(folding)
  }

  package func areEqual(_ left: String, _ right: String) -> Bool {
    let (left, right) = (folded(left), folded(right))
    return left.utf8.elementsEqual(right.utf8)
  }

  /// A string whose byte order is the order that the options specify.
  package func orderKey(_ string: String) -> String {
    let folded = folded(string)
    if options.contains(.localeSensitive), !options.contains(.normalized) {
      return SortOrdering.localized.key(folded)
    }
    return folded
  }

  package func order(_ left: String, _ right: String) -> ComparisonResult {
    let (left, right) = (orderKey(left), orderKey(right))
    if left.utf8.elementsEqual(right.utf8) { return .orderedSame }
    return left.utf8.lexicographicallyPrecedes(right.utf8)
      ? .orderedAscending : .orderedDescending
  }

  /// `BEGINSWITH`, `ENDSWITH`, `CONTAINS`, `LIKE` or `MATCHES`.
  package func test(_ kind: ComparisonKind, _ text: String, _ pattern: String) -> Bool {
    switch kind {
    case .beginsWith: begins(folded(text), folded(pattern))
    case .endsWith: ends(folded(text), folded(pattern))
    case .contains, .tokenMatches: contains(folded(text), folded(pattern))
    case .like: WildcardPattern(folded(pattern)).matches(folded(text))
    case .matches: RegularExpressionCache.shared.matches(text, pattern, options)
    default: false
    }
  }

  private func begins(_ text: String, _ prefix: String) -> Bool {
    guard text.utf8.starts(with: prefix.utf8) else { return false }
    guard options.contains(.wholeWord) else { return true }
    return edges(Array(text.utf8), 0..<prefix.utf8.count)
  }

  private func ends(_ text: String, _ suffix: String) -> Bool {
    let (text, suffix) = (Array(text.utf8), Array(suffix.utf8))
    guard text.suffix(suffix.count).elementsEqual(suffix) else { return false }
    guard options.contains(.wholeWord) else { return true }
    return edges(text, text.count - suffix.count..<text.count)
  }

  private func contains(_ text: String, _ part: String) -> Bool {
    let (text, part) = (Array(text.utf8), Array(part.utf8))
    guard let first = part.first else { return true }
    guard text.count >= part.count else { return false }
    for start in 0...(text.count - part.count) where text[start] == first {
      let range = start..<start + part.count
      guard text[range].elementsEqual(part) else { continue }
      if !options.contains(.wholeWord) || edges(text, range) { return true }
    }
    return false
  }

  /// Whether the range begins and ends at a word boundary.
  ///
  /// Bytes above ASCII count as letters.
  private func edges(_ text: [UInt8], _ range: Range<Int>) -> Bool {
    func isWord(_ index: Int) -> Bool {
      guard text.indices.contains(index) else { return false }
      let byte = text[index]
      return byte >= 0x80 || byte == UInt8(ascii: "_")
        || (byte | 0x20 >= UInt8(ascii: "a") && byte | 0x20 <= UInt8(ascii: "z"))
        || (byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9"))
    }
    return !(isWord(range.lowerBound - 1) && isWord(range.lowerBound))
      && !(isWord(range.upperBound - 1) && isWord(range.upperBound))
  }
}

/// A `LIKE` pattern: `?` is one character, `*` any number, a backslash escapes the next one.
package struct WildcardPattern: Sendable {
  private enum Piece: Equatable {
    case one
    case many
    case exactly(Unicode.Scalar)
  }

  private let pieces: [Piece]

  package init(_ pattern: String) {
    var pieces: [Piece] = []
    var scalars = pattern.unicodeScalars.makeIterator()
    while let scalar = scalars.next() {
      switch scalar {
      case "?": pieces.append(.one)
      case "*": if pieces.last != .many { pieces.append(.many) }
      case "\\": pieces.append(.exactly(scalars.next() ?? scalar))
      default: pieces.append(.exactly(scalar))
      }
    }
    self.pieces = pieces
  }

  /// One pass with one backtracking position for the last `*`: at most pattern times text steps.
  package func matches(_ string: String) -> Bool {
    let text = Array(string.unicodeScalars)
    var (piece, position) = (0, 0)
    var retry: (piece: Int, position: Int)?
    while position < text.count {
      if piece < pieces.count, pieces[piece] == .many {
        retry = (piece, position)
        piece += 1
      } else if piece < pieces.count,
        pieces[piece] == .one || pieces[piece] == .exactly(text[position])
      {
        piece += 1
        position += 1
      } else if let last = retry {
        retry = (last.piece, last.position + 1)
        piece = last.piece + 1
        position = last.position + 1
      } else {
        return false
      }
    }
    return pieces[piece...].allSatisfy { $0 == .many }
  }
}

/// A cache of compiled regular expressions, since a predicate matches many objects with one
/// pattern.
package final class RegularExpressionCache: Sendable {
  package static let shared = RegularExpressionCache()

  private struct Key: Hashable {
    var pattern: String
    var options: UInt
  }

  /// Most programs have few patterns; the limit is for programs that generate them.
  private static let limit = 128
  private let compiled = Mutex<[Key: NSRegularExpression]>([:])

  /// Whether the whole text matches.
  ///
  /// An invalid pattern matches nothing.
  package func matches(
    _ text: String,
    _ pattern: String,
    _ options: StringComparisonOptions
  ) -> Bool {
    guard let expression = expression(pattern, options) else { return false }
    let folded =
      options.contains(.diacriticInsensitive)
      ? StringComparison(.diacriticInsensitive).folded(text) : text
    let range = NSRange(folded.startIndex..., in: folded)
    return expression.firstMatch(in: folded, options: [], range: range) != nil
  }

  /// The anchored expression; nil if the pattern can't be compiled.
  package func expression(
    _ pattern: String,
    _ options: StringComparisonOptions
  ) -> NSRegularExpression? {
    let key = Key(
      pattern: pattern,
      options: options.intersection(.caseInsensitive).rawValue
    )
    if let known = compiled.withLock({ $0[key] }) { return known }
    let made = try? NSRegularExpression(
      pattern: "\\A(?:\(pattern))\\z",
      options: options.contains(.caseInsensitive) ? [.caseInsensitive] : []
    )
    guard let made else { return nil }
    compiled.withLock { cache in
      if cache.count >= Self.limit { cache.removeAll() }
      cache[key] = made
    }
    return made
  }
}
