import Foundation

/// The body of `users/discover`.
package struct DiscoverUsersRequest: Codable, Hashable, Sendable {
  package var lookupInfos: [LookupInfo]?

  package init(
    lookupInfos: [LookupInfo]? = nil
  ) {
    self.lookupInfos = lookupInfos
  }

  private enum CodingKeys: String, CodingKey { case lookupInfos, users }

  /// Some clients name the list as in `users/lookup`.
  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    lookupInfos =
      try container.decodeIfPresent([LookupInfo].self, forKey: .lookupInfos)
      ?? container.decodeIfPresent([LookupInfo].self, forKey: .users)
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encodeIfPresent(lookupInfos, forKey: .lookupInfos)
  }
}

/// The body of `users/lookup/email` and `users/lookup/id`.
package struct LookupUsersRequest: Codable, Hashable, Sendable {
  package var users: [LookupInfo]

  package init(
    users: [LookupInfo]
  ) {
    self.users = users
  }
}

/// The reply of the user look-ups.
package struct UsersResponse: Codable, Hashable, Sendable {
  package var users: [ItemResult<UserIdentity>]
  /// The member that CloudKit JS 1 reads.
  package var contacts: [UserIdentity]?

  package init(
    users: [ItemResult<UserIdentity>],
    contacts: [UserIdentity]? = nil
  ) {
    self.users = users
    self.contacts = contacts
  }
}
