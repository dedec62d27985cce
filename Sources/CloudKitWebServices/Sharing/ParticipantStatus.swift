/// How far an invitation has come; a word that this list lacks is read as `unknown`.
package enum ParticipantStatus: String, Hashable, Sendable, CaseIterable {
  case invited = "INVITED"
  case accepted = "ACCEPTED"
  case removed = "REMOVED"
  /// Left by themselves.
  case unsubscribed = "UNSUBSCRIBED"
  case unknown = "UNKNOWN"
}

extension ParticipantStatus: Codable {
  package init(from decoder: any Decoder) throws {
    let word = try decoder.singleValueContainer().decode(String.self)
    // CloudKit JS calls it so.
    self = word == "PENDING" ? .invited : Self(rawValue: word) ?? .unknown
  }
}
