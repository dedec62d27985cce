import CloudKitWebServices
import Effects
import Foundation
import Logging

/// A link to a user's own data.
package struct AccountExportLink: Codable, Hashable, Sendable {
  package var url: String
  /// Milliseconds since 1970.
  package var expires: Int64
}

/// The download of what an account owns: asked for with the password, fetched once.
final class AccountExports: Sendable {
  let storage: any Storage
  let writer: StorageWriter
  let ownAccounts: OwnAccountService
  let reads: BoundedReads
  let renderer: RecordRenderer
  let assets: AssetService
  let signer: Signer
  let auditLog: AuditLog
  let address: ServerAddress
  let limits: ServiceLimits
  let effects: Effects
  let logger: Logger
  private let running = RunningExports()

  init(
    storage: any Storage,
    writer: StorageWriter,
    ownAccounts: OwnAccountService,
    reads: BoundedReads,
    renderer: RecordRenderer,
    assets: AssetService,
    signer: Signer,
    auditLog: AuditLog,
    address: ServerAddress,
    limits: ServiceLimits,
    effects: Effects,
    logger: Logger
  ) {
    self.storage = storage
    self.writer = writer
    self.ownAccounts = ownAccounts
    self.reads = reads
    self.renderer = renderer
    self.assets = assets
    self.signer = signer
    self.auditLog = auditLog
    self.address = address
    self.limits = limits
    self.effects = effects
    self.logger = logger
  }

  /// Milliseconds since 1970.
  var now: Int64 { effects.now.wireMilliseconds }

  /// A link to the user's data, valid once within a quarter of an hour.
  func begin(
    of own: OwnAccount,
    password: String,
    code: String?
  ) async throws -> AccountExportLink {
    let proven =
      own.isProvenElsewhere
      ? own.account : try await ownAccounts.prove(own, password, code: code)
    let secret = effects.randomness.bytes(24).base64URL
    let expires = now + Int64(limits.exportLinkLifetime * 1000)
    let entry = DirectoryEntry(
      DirectoryEntry.Key(.accountExport, TokenDigest.of(secret)),
      owner: own.account.id,
      expires: expires
    )
    try await writer.write { [storage] in
      var batch = WriteBatch()
      try storage.read { try batch.expectOpen(proven, $0) }
      batch.savedEntries = [entry]
      // A new link revokes the account's previous one.
      batch.removedEntries = try storage.read {
        try $0.entries(DirectoryRange(.accountExport, owner: own.account.id, limit: .max))
      }.map(\.key)
      return (batch, ())
    }
    auditLog.record(
      "account.export",
      by: own.account.userName,
      about: own.account.userName,
      from: own.sender
    )
    return AccountExportLink(
      url: "\(address.url)\(Route.Section.accountData.path)/\(secret)",
      expires: expires
    )
  }

  /// `GET /account-data/…`: the archive.
  func download(_ request: WebServiceRequest) async throws -> StreamedResponse {
    let target = RequestTarget(request.path)
    guard request.method == "GET", target.parts.count == 2 else {
      throw ErrorDictionary.noHandler
    }
    let key = DirectoryEntry.Key(.accountExport, TokenDigest.of(target.parts[1]))
    // Reserves the slot before the link is used up, so that a refusal leaves the link valid.
    let owner = try storage.read { try exportLink(key, $0).account }
    let site = SenderAddress(request.clientAddress)?.site
    guard let slot = running.begin(owner.id, from: site, limits, now: effects.clock.uptime) else {
      throw ErrorDictionary(.tryAgainLater, "another download is running", retryAfter: 60)
    }
    let account = try await useExportLink(key)
    let export = AccountExport(exports: self, account: account)
    return StreamedResponse(
      status: 200,
      headers: [
        WebServiceName.contentType: "application/x-tar",
        "cache-control": "no-store",
        "content-disposition": "attachment; filename=\"account.tar\"",
        "content-security-policy": "sandbox; default-src 'none'",
        "x-content-type-options": "nosniff",
      ],
      body: .stream(nil) { [clock = effects.clock] sink in
        defer { withExtendedLifetime(slot) {} }
        try await export.write { piece in
          try slot.beginPiece(now: clock.uptime)
          defer { slot.endPiece(of: piece.count, now: clock.uptime) }
          try await sink(piece)
        }
      }
    )
  }

  private func useExportLink(_ key: DirectoryEntry.Key) async throws -> StoredAccount {
    try await writer.write { [storage] in
      try storage.read { snapshot in
        let (entry, account) = try self.exportLink(key, snapshot)
        var batch = WriteBatch()
        batch.expectedEntries[key] = .some(entry.revision)
        batch.removedEntries = [key]
        return (batch, account)
      }
    }
  }

  private func exportLink(
    _ key: DirectoryEntry.Key,
    _ snapshot: any StorageSnapshot
  ) throws -> (entry: DirectoryEntry, account: StoredAccount) {
    guard let entry = try snapshot.entry(key), (entry.expires ?? 0) > now,
      let account = try snapshot.account(id: entry.owner),
      try !snapshot.state(of: account.id).0.isDisabled
    else {
      throw ErrorDictionary(.accessDenied, "this link has expired or was used; request another")
    }
    return (entry, account)
  }

  /// The name of the file that an address of this server leads to; nil for another address.
  func fileName(ofDownload url: String) -> String? {
    let seal = url.split(ascii: "/").last.map(String.init) ?? ""
    return signer.open(seal, as: DownloadPermit.self, for: .download)?.file
  }
}
