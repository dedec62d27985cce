import CloudKitWebServices

// The letters of the outcomes.
private let u = MatrixOutcome.unauthenticated
private let s = MatrixOutcome.signIn
private let b = MatrixOutcome.badRequest
private let a = MatrixOutcome.absent
private let d = MatrixOutcome.denied
private let y = MatrixOutcome.answered

extension Endpoint {
  /// The outcome of the matrix's request, for each caller.
  ///
  /// The columns: anonymous, visitor, visitor of another zone; server key; stranger, invited, reader,
  /// writer, removed; the owner in production and in another container; the owner.
  func matrixRow(in scope: DatabaseScope) -> MatrixRow {
    switch scope {
    case .private: privateRow
    case .shared: sharedRow
    case .public: publicRow
    }
  }

  /// The owner's zone, requested in the caller's private database, where it does not exist.
  private var privateRow: MatrixRow {
    switch self {
    case .queryRecords, .lookupRecords, .changedRecords, .zoneChanges, .lookupZones,
      .modifyRecords, .uploadAssets, .rereferenceAssets, .lookupSubscriptions,
      .modifySubscriptions:
      MatrixRow(s, s, s, u, a, a, a, a, a, a, a, y)
    case .listZones, .modifyZones, .changedZones, .databaseChanges, .listSubscriptions, .caller,
      .currentUser, .lookupUsersByEmail, .lookupUsersByID, .lookupContacts:
      MatrixRow(s, u, people: y)
    // Shares are resolved and users discovered through the public database.
    case .resolveShares: MatrixRow(b, u, people: b)
    case .acceptShares, .requestAccess, .discoverUsers: MatrixRow(s, u, people: b)
    // A device's event URL belongs to no database.
    case .createToken, .registerToken: MatrixRow(y, u, people: y)
    }
  }

  /// The same in the shared database: for participants, within their rights.
  private var sharedRow: MatrixRow {
    switch self {
    case .queryRecords, .lookupRecords, .changedRecords, .zoneChanges, .lookupZones:
      MatrixRow(s, y, a, u, a, a, y, y, a, a, a, a)
    case .modifyRecords, .uploadAssets: MatrixRow(s, s, s, u, a, a, d, y, a, a, a, a)
    case .rereferenceAssets: MatrixRow(s, s, s, u, a, a, y, y, a, a, a, a)
    case .listZones, .changedZones, .databaseChanges:
      MatrixRow(s, y, y, u, y, y, y, y, y, y, y, y)
    // Only owners create zones, and subscriptions to zones exist in private databases only.
    case .modifyZones, .modifySubscriptions: MatrixRow(s, u, people: b)
    case .lookupSubscriptions: MatrixRow(s, u, people: a)
    case .listSubscriptions, .caller, .currentUser, .lookupUsersByEmail, .lookupUsersByID,
      .lookupContacts:
      MatrixRow(s, u, people: y)
    case .resolveShares: MatrixRow(b, u, people: b)
    case .acceptShares, .requestAccess, .discoverUsers: MatrixRow(s, u, people: b)
    case .createToken, .registerToken: MatrixRow(y, u, people: y)
    }
  }

  /// The owner's record of a type that only its creator may read; the public database has no zones
  /// and no changes.
  private var publicRow: MatrixRow {
    switch self {
    // Records that the caller may not read are left out.
    case .queryRecords: MatrixRow(s, s, s, y, y, y, y, y, y, a, a, y)
    case .lookupRecords: MatrixRow(d, d, d, d, d, d, d, d, d, a, a, y)
    // Production does not have the type; in another container the name is unused.
    case .modifyRecords: MatrixRow(s, s, s, d, d, d, d, d, d, b, y, y)
    case .rereferenceAssets: MatrixRow(s, s, s, a, a, a, a, a, a, a, a, b)
    case .uploadAssets: MatrixRow(s, y, people: y)
    case .lookupZones: MatrixRow(a, a, people: a)
    case .changedRecords, .zoneChanges, .modifyZones, .changedZones, .databaseChanges,
      .modifySubscriptions:
      MatrixRow(s, b, people: b)
    case .listZones: MatrixRow(y, y, people: y)
    case .lookupSubscriptions: MatrixRow(s, a, people: a)
    case .listSubscriptions, .caller, .currentUser: MatrixRow(s, y, people: y)
    case .discoverUsers, .lookupUsersByEmail, .lookupUsersByID, .lookupContacts:
      MatrixRow(s, u, people: y)
    case .resolveShares: MatrixRow(s, s, s, a, a, y, y, y, a, a, a, y)
    case .acceptShares: MatrixRow(s, s, s, a, a, y, y, y, a, a, a, y)
    case .requestAccess: MatrixRow(s, y, people: y)
    case .createToken, .registerToken: MatrixRow(y, y, people: y)
    }
  }
}
