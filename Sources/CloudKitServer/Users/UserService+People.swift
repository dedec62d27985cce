import CloudKitWebServices

extension UserService {
  /// A user of the container, as in shares: with the contacts that an administrator or an issuer
  /// has verified.
  ///
  /// An address that its holder only typed is left out. It matches no invitation, and no owner who
  /// receives a request sees it.
  func person(
    named user: String,
    _ context: RequestContext,
    _ snapshot: any StorageSnapshot
  ) throws -> SharePerson? {
    guard let known = try snapshot.user(container: context.container, recordName: user) else {
      return nil
    }
    let account = try snapshot.account(id: known.account)
    let isDiscoverable = try isDiscoverable(known.account, in: context.container, snapshot)
    let isUnverified = try snapshot.state(of: known.account).0.hasUnverifiedAddress == true
    return SharePerson(
      user: user,
      emailAddress: isUnverified ? nil : account?.emailAddress,
      phoneNumber: try snapshot.phoneNumber(ofAccount: known.account),
      names: NameComponents(givenName: account?.givenName, familyName: account?.familyName),
      isDiscoverable: isDiscoverable
    )
  }

  /// The user with the contact of an invitation, if there is one.
  func person(
    _ info: LookupInfo,
    _ context: RequestContext,
    _ snapshot: any StorageSnapshot
  ) throws -> SharePerson? {
    if let user = info.userRecordName { return try person(named: user, context, snapshot) }
    var account: String?
    if let address = info.emailAddress, !address.isEmpty {
      account = try snapshot.account(owning: address)?.id
    } else if let number = info.phoneNumber {
      account = try snapshot.account(phoneNumber: number)
    }
    guard let account,
      let user = try snapshot.user(container: context.container, account: account)
    else { return nil }
    return try person(named: user.recordName, context, snapshot)
  }
}
