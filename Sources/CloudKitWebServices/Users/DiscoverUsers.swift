import Foundation

/// The body of `users/discover`.
package struct DiscoverUsersRequest: Codable, Hashable, Sendable {
  package var lookupInfos: [LookupInfo]?

  package init(
    lookupInfos: [LookupInfo]? = nil
  ) {
    self.lookupInfos = lookupInfos
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
  /// The name CloudKit JS 1 reads.
  package var contacts: [UserIdentity]?

  package init(
    users: [ItemResult<UserIdentity>],
    contacts: [UserIdentity]? = nil
  ) {
    self.users = users
    self.contacts = contacts
  }
}
