/// The status of an invitation; a text that is not listed is read as `unknown`.
package enum ParticipantStatus: String, Hashable, Sendable, CaseIterable {
  case invited = "INVITED"
  case accepted = "ACCEPTED"
  case removed = "REMOVED"
  /// The participant left the share.
  case unsubscribed = "UNSUBSCRIBED"
  case unknown = "UNKNOWN"
}

extension ParticipantStatus: Codable {
  package init(from decoder: any Decoder) throws {
    let word = try decoder.singleValueContainer().decode(String.self)
    // CloudKit JS uses this name.
    self = word == "PENDING" ? .invited : Self(rawValue: word) ?? .unknown
  }
}
