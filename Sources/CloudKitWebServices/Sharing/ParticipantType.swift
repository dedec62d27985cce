/// The role of a participant; a text that is not listed is read as `unknown`.
package enum ParticipantType: String, Hashable, Sendable, CaseIterable {
  case owner = "OWNER"
  case administrator = "ADMINISTRATOR"
  case user = "USER"
  /// A participant who joined by the link.
  case publicUser = "PUBLIC_USER"
  case unknown = "UNKNOWN"
}

extension ParticipantType: Codable {
  package init(from decoder: any Decoder) throws {
    let word = try decoder.singleValueContainer().decode(String.self)
    // CloudKit JS has a constant of this name; some clients fail at an unknown name, so it is read
    // and never written.
    self = word == "PRIVATE_USER" ? .user : Self(rawValue: word) ?? .unknown
  }
}
