/// The comparisons a query's filter can make.
package enum QueryComparator: String, Codable, Hashable, Sendable, CaseIterable {
  case equals = "EQUALS"
  case notEquals = "NOT_EQUALS"
  case lessThan = "LESS_THAN"
  case lessThanOrEquals = "LESS_THAN_OR_EQUALS"
  case greaterThan = "GREATER_THAN"
  case greaterThanOrEquals = "GREATER_THAN_OR_EQUALS"
  case near = "NEAR"
  case containsAllTokens = "CONTAINS_ALL_TOKENS"
  case containsAnyTokens = "CONTAINS_ANY_TOKENS"
  case `in` = "IN"
  case notIn = "NOT_IN"
  case listContains = "LIST_CONTAINS"
  case notListContains = "NOT_LIST_CONTAINS"
  case listContainsAny = "LIST_CONTAINS_ANY"
  case notListContainsAny = "NOT_LIST_CONTAINS_ANY"
  case listContainsAll = "LIST_CONTAINS_ALL"
  case notListContainsAll = "NOT_LIST_CONTAINS_ALL"
  case beginsWith = "BEGINS_WITH"
  case notBeginsWith = "NOT_BEGINS_WITH"
  case listMemberBeginsWith = "LIST_MEMBER_BEGINS_WITH"
  case notListMemberBeginsWith = "NOT_LIST_MEMBER_BEGINS_WITH"

  /// Names that other tools use for the same comparisons.
  private static let aliases: [String: QueryComparator] = [
    "CONTAINS_ANY": .listContainsAny,
    "LIST_NOT_CONTAINS": .notListContains,
    "LIST_NOT_CONTAINS_ANY": .notListContainsAny,
  ]

  /// Looks a comparison up by its name or by another tool's name for it.
  package init?(name: String) {
    guard let comparator = QueryComparator(rawValue: name) ?? Self.aliases[name] else { return nil }
    self = comparator
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    let name = try container.decode(String.self)
    guard let comparator = QueryComparator(name: name) else {
      throw DecodingError.dataCorruptedError(
        in: container,
        debugDescription: "Unknown comparator '\(name)'"
      )
    }
    self = comparator
  }
}
