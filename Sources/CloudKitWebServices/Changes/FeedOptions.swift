/// The filters and the format of a zone's feed.
///
/// Its keys are in the same object as a zone's other options, or beside the list of zones in a
/// request for several.
package struct FeedOptions: Codable, Hashable, Sendable {
  package var desiredKeys: [String]?
  package var desiredRecordTypes: [String]?
  package var resultsLimit: Int?
  /// Newest first.
  package var reverse: Bool?
  package var numbersAsStrings: Bool?
  /// An extension: a listing without a token also contains the deletions whose tombstones the
  /// server has.
  ///
  /// For a client that knows records but has no valid token.
  package var includesDeleted: Bool?

  package init(
    desiredKeys: [String]? = nil,
    desiredRecordTypes: [String]? = nil,
    resultsLimit: Int? = nil,
    reverse: Bool? = nil,
    numbersAsStrings: Bool? = nil,
    includesDeleted: Bool? = nil
  ) {
    self.desiredKeys = desiredKeys
    self.desiredRecordTypes = desiredRecordTypes
    self.resultsLimit = resultsLimit
    self.reverse = reverse
    self.numbersAsStrings = numbersAsStrings
    self.includesDeleted = includesDeleted
  }

  /// These options, with their missing values taken from the other ones.
  package func filled(from others: FeedOptions) -> FeedOptions {
    FeedOptions(
      desiredKeys: desiredKeys ?? others.desiredKeys,
      desiredRecordTypes: desiredRecordTypes ?? others.desiredRecordTypes,
      resultsLimit: resultsLimit ?? others.resultsLimit,
      reverse: reverse ?? others.reverse,
      numbersAsStrings: numbersAsStrings ?? others.numbersAsStrings,
      includesDeleted: includesDeleted ?? others.includesDeleted
    )
  }

  private enum CodingKeys: String, CodingKey {
    case desiredKeys, desiredRecordTypes, resultsLimit, reverse
    case numbersAsStrings, numberAsStrings, includesDeleted
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    desiredKeys = try container.decodeIfPresent([String].self, forKey: .desiredKeys)
    desiredRecordTypes = try container.decodeIfPresent([String].self, forKey: .desiredRecordTypes)
    resultsLimit = try container.decodeIfPresent(Int.self, forKey: .resultsLimit)
    reverse = try container.decodeIfPresent(Bool.self, forKey: .reverse)
    // The documentation has both spellings of the key.
    numbersAsStrings =
      try container.decodeIfPresent(Bool.self, forKey: .numbersAsStrings)
      ?? container.decodeIfPresent(Bool.self, forKey: .numberAsStrings)
    includesDeleted = try container.decodeIfPresent(Bool.self, forKey: .includesDeleted)
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encodeIfPresent(desiredKeys, forKey: .desiredKeys)
    try container.encodeIfPresent(desiredRecordTypes, forKey: .desiredRecordTypes)
    try container.encodeIfPresent(resultsLimit, forKey: .resultsLimit)
    try container.encodeIfPresent(reverse, forKey: .reverse)
    try container.encodeIfPresent(numbersAsStrings, forKey: .numbersAsStrings)
    try container.encodeIfPresent(includesDeleted, forKey: .includesDeleted)
  }
}
