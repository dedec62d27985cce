import CloudKitWebServices

/// The callers of a documented endpoint, and the form of its requests.
struct EndpointRules: Hashable, Sendable {
  enum Callers: Sendable {
    /// Any caller with an API token, for any database in the path.
    case anyone
    /// Any caller for the public database; a signed-in user for the private and shared ones.
    case users
    /// The callers of `users`, and for the shared database also a visitor of a share that its owner
    /// opened to everyone.
    case usersAndVisitors
  }

  var callers: Callers
  /// A read without parameters, which clients also send as `GET`.
  var allowsGet = false
  /// Nothing is written: the read ends when its client disconnects.
  var isRead = false
  /// Whether the path names a database.
  var needsDatabase = true
  /// The largest body.
  var body = RouteRules.Body.request
}

extension Endpoint {
  /// The rules of each endpoint: an endpoint without them does not compile.
  var rules: EndpointRules {
    switch self {
    case .lookupRecords, .queryRecords, .changedRecords, .zoneChanges, .databaseChanges,
      .changedZones, .lookupZones:
      EndpointRules(callers: .usersAndVisitors, isRead: true)
    case .listZones: EndpointRules(callers: .usersAndVisitors, allowsGet: true, isRead: true)
    case .modifyRecords: EndpointRules(callers: .users, body: .records)
    case .modifyZones, .lookupSubscriptions, .modifySubscriptions,
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
  /// Throws for a caller that the rules do not allow.
  ///
  /// This is the only check that keeps callers without a signed-in user out of private and shared
  /// databases; rights within a database are checked where its rows are read.
  func admit(_ context: RequestContext) throws(ErrorDictionary) {
    switch callers {
    case .anyone: return
    case .usersAndVisitors where context.caller.visit != nil: return
    case .users, .usersAndVisitors:
      guard context.scope != .public else { return }
      _ = try context.user()
    }
  }
}
