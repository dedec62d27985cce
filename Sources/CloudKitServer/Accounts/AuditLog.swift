import CloudKitWebServices
import Foundation

/// One line of the audit log: who did what to whom, when and from where.
///
/// No line holds a secret: a name that no account has is left out, since people type passwords into
/// that field by mistake.
package struct AuditLine: Codable, Hashable, Sendable {
  /// Milliseconds since 1970.
  package var time: Int64
  /// A kind and, behind a point, what was done: `account.delete`.
  package var action: String
  /// The administrator or the person; empty for the server itself.
  package var by: String
  package var about: String
  package var detail: String?
  /// Where the request came from; nil for the server itself.
  package var address: String?
  /// What the person calls the device.
  package var device: String?
}

/// Which lines of the audit log are wanted.
package struct AuditQuery: Codable, Hashable, Sendable {
  /// The name that the reply before gave, to continue after.
  package var after: String?
  package var limit: Int?
  /// Lines by or about this account.
  package var account: String?
  /// An action, or the kind before its point.
  package var kind: String?
  /// Milliseconds since 1970; lines of before are left out.
  package var since: Int64?
  /// Lines from this address, or another one of its IPv6 network.
  package var address: String?

  package init(
    after: String? = nil,
    limit: Int? = nil,
    account: String? = nil,
    kind: String? = nil,
    since: Int64? = nil,
    address: String? = nil
  ) {
    self.after = after
    self.limit = limit
    self.account = account
    self.kind = kind
    self.since = since
    self.address = address
  }

  var size: Int { min(max(limit ?? 200, 1), 1000) }

  func matches(_ line: AuditLine) -> Bool {
    if let since, line.time < since { return false }
    if let kind, line.action != kind, !line.action.hasPrefix("\(kind).") { return false }
    if let account {
      let name = StoredAccount.folded(account)
      guard [line.by, line.about].contains(where: { StoredAccount.folded($0) == name }) else {
        return false
      }
    }
    guard let address else { return true }
    return line.address == address
      || line.address.flatMap { SenderAddress($0)?.network } == SenderAddress(address)?.network
  }
}

extension CloudKitService {
  /// Lines that one call looks at before it answers with what it has and a name to continue after.
  private static let linesPerLook = 10_000

  /// Notes what was done; the line is on the disk before the storage closes.
  func audit(
    _ action: String,
    by actor: String,
    about subject: String,
    detail: String? = nil,
    from sender: SenderAddress? = nil,
    device: String? = nil,
    isOperator: Bool = false
  ) {
    audit(
      AuditLine(
        time: now,
        action: action,
        by: actor,
        about: subject,
        detail: detail,
        address: sender?.text,
        device: device
      ),
      lifetime: limits.auditLifetime,
      isOperator: isOperator
    )
  }

  /// Notes what an administrator did.
  func audit(
    _ action: String,
    by call: AdminCall,
    about subject: String,
    detail: String? = nil,
    device: String? = nil
  ) {
    audit(
      action,
      by: call.by,
      about: subject,
      detail: detail,
      from: call.sender,
      device: device,
      isOperator: call.isOperator
    )
  }

  /// Notes a sign-in that failed, of an account that is known.
  ///
  /// What strangers cause is kept for a shorter time, and of a flood so many lines an hour
  /// (``AuditedFailures``); the server's log has them all. Tools that shut senders out read it there:
  /// the words and the address stand in the message itself, in this order, and nothing in it comes from
  /// the sender but the address.
  func auditFailure(_ account: StoredAccount?, from sender: SenderAddress?, detail: String) {
    if let sender { logger.warning("sign-in failed from \(sender.shown)") }
    let time = now
    let isKept = auditedFailures.withLock { count in
      count.keepsLine(of: account?.id, from: sender, now: time, limits)
    }
    guard isKept else { return }
    audit(
      AuditLine(
        time: now,
        action: "sign-in.failure",
        by: "",
        about: account?.userName ?? "",
        detail: detail,
        address: sender?.text
      ),
      lifetime: limits.auditFailureLifetime
    )
  }

  /// Notes in the server's log alone that a sender was refused before anything was judged.
  func logRefusal(of sender: SenderAddress?) {
    if let sender { logger.warning("sign-in refused from \(sender.shown)") }
  }

  /// Writes a line, owned by the account of its actor: by its ID, since the name may be another
  /// person's later, and a person may have the name that lines of the operator have.
  private func audit(_ line: AuditLine, lifetime: Double, isOperator: Bool = false) {
    logger.notice(
      "audit: \(line.action)",
      metadata: [
        "by": "\(line.by)", "about": "\(line.about)", "address": "\(line.address ?? "")",
      ]
    )
    // Names sort by time, and no two are equal.
    let name = "\(Self.name(ofLinesAt: line.time))-\(effects.randomness.bytes(4).hexadecimal)"
    let expires = line.time + Int64(lifetime * 1000)
    writing.async { [storage] in
      // A log that cannot be written must not undo what it tells of.
      guard let body = try? WireCoding.encode(line) else { return }
      let actor = isOperator ? nil : try? storage.read { try $0.account(userName: line.by) }
      var batch = WriteBatch()
      batch.savedEntries = [
        DirectoryEntry(
          DirectoryEntry.Key(.audit, name),
          owner: actor?.id ?? "",
          expires: expires,
          body: body
        )
      ]
      try? storage.commit(batch)
    }
  }

  private static func name(ofLinesAt time: Int64) -> String {
    let digits = String(time)
    return String(repeating: "0", count: max(0, 15 - digits.count)) + digits
  }

  /// The newest lines first, with the name to continue after.
  ///
  /// A page may be empty and have a name to continue after, where many lines were passed over.
  package func auditLines(
    _ query: AuditQuery = AuditQuery()
  ) async throws -> (lines: [AuditLine], last: String?) {
    var lines: [AuditLine] = []
    var after = query.after
    var looked = 0
    let end = query.since.map { Self.name(ofLinesAt: $0) }
    while looked < Self.linesPerLook {
      // In the lane, behind the lines that are still to be written.
      let range = DirectoryRange(.audit, after: after, isReversed: true, limit: query.size)
      let entries = try await writing.run { [storage] in
        try storage.read { try $0.entries(range) }
      }
      for entry in entries {
        if let end, entry.key.name < end { return (lines, nil) }
        after = entry.key.name
        let line = try WireCoding.decode(AuditLine.self, from: entry.body)
        guard query.matches(line) else { continue }
        lines.append(line)
        if lines.count == query.size { return (lines, after) }
      }
      looked += entries.count
      guard entries.count == query.size else { return (lines, nil) }
    }
    return (lines, after)
  }
}
