/// The operator of a comparison.
package enum ComparisonKind: String, Sendable, Hashable, CaseIterable {
  case lessThan = "<"
  case lessThanOrEqual = "<="
  case greaterThan = ">"
  case greaterThanOrEqual = ">="
  case equal = "=="
  case notEqual = "!="
  case matches = "MATCHES"
  case like = "LIKE"
  case beginsWith = "BEGINSWITH"
  case endsWith = "ENDSWITH"
  case `in` = "IN"
  case contains = "CONTAINS"
  /// CloudKit's own operator for its search of strings; elsewhere it equals `CONTAINS`.
  case tokenMatches = "TOKENMATCHES"
  case between = "BETWEEN"
}

/// Whether the left side is a single value or each value of a collection.
package enum ComparisonModifier: String, Sendable, Hashable {
  case direct = ""
  case all = "ALL"
  case any = "ANY"
}

/// The options in brackets after an operator: `BEGINSWITH[cd]`.
package struct StringComparisonOptions: OptionSet, Sendable, Hashable {
  package let rawValue: UInt

  package init(rawValue: UInt) {
    self.rawValue = rawValue
  }

  /// Upper and lower case are the same: `c`.
  package static let caseInsensitive = StringComparisonOptions(rawValue: 1)
  /// Letters with and without marks are the same: `d`.
  package static let diacriticInsensitive = StringComparisonOptions(rawValue: 2)
  /// `n`: both sides are already folded; bytes are compared.
  package static let normalized = StringComparisonOptions(rawValue: 4)
  /// `l`: strings are sorted by language rather than by code points.
  package static let localeSensitive = StringComparisonOptions(rawValue: 8)
  /// `w`: a substring must begin and end at a word boundary.
  package static let wholeWord = StringComparisonOptions(rawValue: 16)

  private static let letters: [(Character, StringComparisonOptions)] = [
    ("c", .caseInsensitive), ("d", .diacriticInsensitive), ("n", .normalized),
    ("l", .localeSensitive), ("w", .wholeWord),
  ]

  /// Reads the letters; nil if one of them is not in `c d n l w`.
  package init?(letters text: String) {
    var options: StringComparisonOptions = []
    for letter in text.lowercased() {
      guard let known = Self.letters.first(where: { $0.0 == letter }) else { return nil }
      options.insert(known.1)
    }
    self = options
  }

  /// The letters, without brackets.
  ///
  /// With `[n]` the options `c` and `d` have no effect, as with Apple.
  package var letters: String {
    String(Self.letters.filter { contains($0.1) }.map(\.0))
  }
}
