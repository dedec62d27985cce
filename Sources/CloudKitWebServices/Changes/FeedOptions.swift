/// Which part of a zone's feed is wanted, and how it is shown.
///
/// Its keys stand beside others in a zone's options, and beside the zones in a request for several.
package struct FeedOptions: Codable, Hashable, Sendable {
  package var desiredKeys: [String]?
  package var desiredRecordTypes: [String]?
  package var resultsLimit: Int?
  /// Newest first.
  package var reverse: Bool?
  package var numbersAsStrings: Bool?
  /// An extension: a listing without a token has the deletions of which the server has traces, too.
  ///
  /// A client asks for them that knows records although it has no token that can be continued.
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

  /// These, and where they say nothing what the others say.
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
    // The documentation spells the key both ways.
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
