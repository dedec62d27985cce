import Effects
import Foundation
import WatershedSQLite

/// Reads a zone from its start after its change token was lost.
extension StoreMirror {
  /// Reads the zone of another server from the start.
  func rereadOtherServer() async throws {
    // The token of another account looks the same, and that account must not receive these objects.
    try await checkAccount()
    try await checkAccountEpoch()
    // The other server may not have this device's subscription.
    try await saveSubscription()
    try reread(.otherServer)
  }

  /// Makes the next import read the zone from the start and compare.
  private func reread(_ reason: MirrorMetadata.Rereading) throws {
    switch reason {
    case .expired:
      journal.note(
        .import,
        .rereading,
        cause: "The change token has expired.",
        effect: "The zone is read from the start; what the server no longer has was deleted."
      )
    case .kept:
      journal.note(
        .import,
        .rereading,
        cause: "The change token cannot be continued, and the server does not say why.",
        effect: "The zone is read from the start; what the server no longer has is sent again."
      )
    case .otherServer:
      journal.note(
        .import,
        .rereading,
        cause: "The server is another one, or was restored from a backup.",
        effect: "The zone is read from the start; what the server lost is sent again."
      )
    }
    try write(MirrorAuthor.importing) { session in
      try session.startRereading(reason)
      // The token is useless, and an interrupted read must not start again.
      try session.metadata.setMeta(.databaseToken, nil)
    }
  }

  /// Whether the first page after a token is to list deletions, which a first reading of a zone leaves out.
  ///
  /// A tombstone is stronger evidence than a missing record. In a first reading it may be of an object
  /// whose record this store has no tag of: another copy of the store has sent it, and it was deleted since.
  func needsDeletions(_ zone: MirrorMetadata.Zone) throws -> Bool {
    if zone.rereading != nil { return !effects.has(.rereadWithoutDeletions) }
    return try zone.token == nil && read { try $0.hasUnconfirmedRecord() }
  }

  /// Throws if the zone is not the one that was read before: records that another zone lacks were not
  /// deleted.
  ///
  /// This is checked after the last page, before any missing record counts as deleted. A new version of the model
  /// begins a re-read without a token, to which a zone that was made again replies like any other.
  func checkIdentity(of zone: MirrorMetadata.Zone) async throws {
    guard !effects.has(.trustOtherZone), !effects.has(.restoredIsExpired),
      let token = try read({ try $0.blob(.tokenBeforeRereading) })
    else { return }
    do {
      _ = try await cloud.zoneChanges(
        options.zone,
        after: token,
        limit: 1,
        keys: [],
        includesDeleted: false
      )
    } catch CloudFailure.tokenExpired(.expired) {
      // The server knows the zone, and the token is too old.
    }
  }

  /// Has the zone read from its start, or made again, after the server could not continue its token.
  func startAgain(
    after failure: CloudFailure,
    _ zone: MirrorMetadata.Zone,
    _ losses: inout Int
  ) async throws {
    switch failure {
    case .tokenExpired(let loss) where zone.token != nil || zone.rereading == .expired:
      switch loss {
      case .expired where effects.has(.expiredIsOtherZone):
        try await recoverLostZone(cause: "The zone was deleted and made again.")
      case .expired: try reread(.expired)
      case .otherServer where effects.has(.restoredIsExpired): try reread(.expired)
      case .unexplained: try reread(.kept)
      case .otherServer: try await rereadOtherServer()
      case .otherZone:
        losses += 1
        guard losses < 3 else { throw failure }
        try await recoverLostZone(cause: "The zone was deleted and made again.")
      }
    case .zoneMissing:
      losses += 1
      // A zone that is deleted each time it is created is retried later.
      guard losses < 3 else { throw failure }
      try await recoverLostZone(cause: "The zone is not on the server.")
    default: throw failure
    }
  }
}
