import CloudKitWebServices

/// Who may call a documented endpoint, and how.
struct EndpointRules: Hashable, Sendable {
  enum Callers: Sendable {
    /// Anyone with an API token, whichever database the path names.
    case anyone
    /// In the public database anyone; in the private and shared ones a signed-in user.
    case users
    /// As `users`, and in the shared database also a visitor of a share that its owner opened to
    /// everyone.
    case usersAndVisitors
  }

  var callers: Callers
  /// A read without parameters, which clients also send as `GET`.
  var allowsGet = false
  /// Nothing is written: the read ends when its client has left.
  var isRead = false
  /// The path names a database.
  var needsDatabase = true
}

extension Endpoint {
  /// One row for each endpoint: without one, an endpoint does not compile.
  var rules: EndpointRules {
    switch self {
    case .lookupRecords, .queryRecords, .changedRecords, .zoneChanges, .databaseChanges,
      .changedZones, .lookupZones:
      EndpointRules(callers: .usersAndVisitors, isRead: true)
    case .listZones: EndpointRules(callers: .usersAndVisitors, allowsGet: true, isRead: true)
    case .modifyRecords, .modifyZones, .lookupSubscriptions, .modifySubscriptions,
      .lookupUsersByEmail, .lookupUsersByID, .uploadAssets, .rereferenceAssets:
      EndpointRules(callers: .users)
    case .caller, .currentUser, .listSubscriptions, .discoverUsers, .lookupContacts:
      EndpointRules(callers: .users, allowsGet: true)
    case .resolveShares, .acceptShares, .requestAccess: EndpointRules(callers: .anyone)
    case .createToken, .registerToken: EndpointRules(callers: .anyone, needsDatabase: false)
    }
  }
}

extension EndpointRules {
  /// Refuses a caller whom the rules do not admit.
  ///
  /// The one place that keeps private and shared databases from callers who are not signed in; rights
  /// within a database are checked where its rows are read.
  func admit(_ context: RequestContext) throws(ErrorDictionary) {
    switch callers {
    case .anyone: return
    case .usersAndVisitors where context.visit != nil: return
    case .users, .usersAndVisitors:
      guard context.scope != .public else { return }
      _ = try context.user()
    }
  }
}
