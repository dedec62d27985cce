/// The permission of a participant; a text that is not listed is read as `unknown`.
package enum ParticipantPermission: String, Hashable, Sendable, CaseIterable {
  case none = "NONE"
  case readOnly = "READ_ONLY"
  case readWrite = "READ_WRITE"
  case unknown = "UNKNOWN"

  package var canRead: Bool { self == .readOnly || self == .readWrite }
  package var canWrite: Bool { self == .readWrite }
}

extension ParticipantPermission: Codable {
  package init(from decoder: any Decoder) throws {
    let word = try decoder.singleValueContainer().decode(String.self)
    self = Self(rawValue: word) ?? .unknown
  }
}
