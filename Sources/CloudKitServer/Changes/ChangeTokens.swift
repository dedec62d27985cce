import CloudKitWebServices

/// Seals the tokens of the feeds, and opens those that clients send.
final class ChangeTokens: Sendable {
  private let storage: any Storage
  private let signer: Signer

  init(storage: any Storage, signer: Signer) {
    self.storage = storage
    self.signer = signer
  }

  func seal(_ token: ChangeToken, _ context: RequestContext) throws -> String {
    var token = token
    token.incarnation = storage.incarnation
    token.principal = context.reader
    return try signer.seal(token, for: .changeToken)
  }

  /// The contents of a client's token; nil for a client without one.
  ///
  /// A token of a former incarnation is valid in this one if all changes that it contains are in
  /// both histories. Called outside of a read, because it may read the storage.
  func open(_ text: String?) throws -> ChangeToken? {
    guard let text, !text.isEmpty else { return nil }
    guard var token = signer.open(text, as: ChangeToken.self, for: .changeToken), token.isPossible
    else {
      // Sealed by a server with other keys, or not by a server.
      throw ErrorDictionary(
        .badRequest,
        "Unknown sync continuation type",
        extension: ErrorExtension(code: .changeTokenExpired, cause: .otherIncarnation)
      )
    }
    let present = storage.incarnation
    token.readIn = present
    if token.incarnation != present,
      try token.knownChanges.allSatisfy({ partition, change in
        try storage.contains(token.incarnation, of: partition, through: change)
      })
    {
      token.incarnation = present
    }
    return token
  }

  /// The token to continue from, if it belongs to this database or zone and has not expired.
  func check(
    _ token: ChangeToken?,
    zone: ZoneNumber?,
    _ id: PartitionID,
    counter: ChangeNumber,
    _ context: RequestContext
  ) throws(ErrorDictionary) -> ChangeToken {
    guard let token else { return ChangeToken(zone: zone, id, counter: .zero) }
    guard token.principal == context.reader, token.partition == id,
      (token.zone == nil) == (zone == nil)
    else {
      throw ErrorDictionary(
        .badRequest,
        "the sync token belongs to another database or zone",
        extension: ErrorExtension(code: .changeTokenExpired, cause: .otherIncarnation)
      )
    }
    guard token.incarnation == storage.incarnation || token.readIn == storage.incarnation else {
      throw ErrorDictionary(
        .tryAgainLater,
        "the storage is switching to another incarnation, try again"
      )
    }
    // A token with newer changes than the server has is from before a backup was restored.
    guard token.incarnation == storage.incarnation, token.counter <= counter,
      [token.top, token.began, token.seen].allSatisfy({ ($0 ?? .zero) <= counter })
    else { throw Self.expired(.otherIncarnation) }
    guard token.zone == zone else { throw Self.expired(.otherZone) }
    return token
  }

  /// The error for a token that cannot be continued.
  static func expired(_ cause: ErrorExtensionCode = .tooOld) -> ErrorDictionary {
    ErrorDictionary(
      .badRequest,
      "the sync token has expired, start again without one",
      extension: ErrorExtension(code: .changeTokenExpired, cause: cause)
    )
  }

  /// The zone's newest token, if the request asked for one.
  func newest(
    of zone: ZoneID?,
    _ database: TargetDatabase,
    _ snapshot: any StorageSnapshot,
    _ context: RequestContext
  ) throws -> String? {
    guard context.wantsSyncToken, context.reader != .anonymous, let zone,
      let row = ZoneDirectory(database, context).row(named: zone.zoneName), row.ending == nil
    else { return nil }
    let counter = try snapshot.database(database.id).counter
    let reader = database.access.reader(of: row.number)
    return try seal(
      ChangeToken(
        zone: row.number,
        database.id,
        counter: counter,
        participation: reader.wholeSince
      ),
      context
    )
  }
}
