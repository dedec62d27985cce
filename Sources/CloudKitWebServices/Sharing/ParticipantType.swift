/// What somebody is to a share; a word that this list lacks is read as `unknown`.
package enum ParticipantType: String, Hashable, Sendable, CaseIterable {
  case owner = "OWNER"
  case administrator = "ADMINISTRATOR"
  case user = "USER"
  /// Joined by the link alone.
  case publicUser = "PUBLIC_USER"
  case unknown = "UNKNOWN"
}

extension ParticipantType: Codable {
  package init(from decoder: any Decoder) throws {
    let word = try decoder.singleValueContainer().decode(String.self)
    // CloudKit JS has a constant of this name; some clients stop at a word they don't know, so it
    // is read and never written.
    self = word == "PRIVATE_USER" ? .user : Self(rawValue: word) ?? .unknown
  }
}
