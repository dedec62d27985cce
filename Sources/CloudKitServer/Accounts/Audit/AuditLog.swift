import CloudKitWebServices
import Foundation

/// One line of the audit log: the actor, the action, the account, the time and the sender's
/// address.
///
/// No line has a secret: an unknown user name is left out, because users sometimes type passwords
/// into that field.
package struct AuditLine: Codable, Hashable, Sendable {
  /// Milliseconds since 1970.
  package var time: Int64
  /// A kind and, after a dot, the action: `account.delete`.
  package var action: String
  /// The administrator or the user; empty for the server itself.
  package var by: String
  package var about: String
  package var detail: String?
  /// The sender's address; nil for the server itself.
  package var address: String?
  /// The user's name of the device.
  package var device: String?
}

/// The requested lines of the audit log.
package struct AuditQuery: Codable, Hashable, Sendable {
  /// The name that the previous reply returned, to continue after it.
  package var after: String?
  package var limit: Int?
  /// Lines by or about this account.
  package var account: String?
  /// An action, or the kind before its point.
  package var kind: String?
  /// Milliseconds since 1970; earlier lines are left out.
  package var since: Int64?
  /// Lines from this address, or from another one of its IPv6 network.
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
  /// The number of lines that one call examines before it returns those found, and a name to
  /// continue after.
  private static let linesPerCall = 10_000

  /// Writes a line; it is durable before the storage closes.
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

  /// Writes a line about an administrator's action.
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

  /// Records a failed sign-in, of a known account.
  ///
  /// These lines, which any sender can cause, expire sooner, and only a limited number per hour is
  /// written (``AuditedFailures``); the server's log has all of them. Tools that block senders read
  /// them there: the text and the address are in the message itself, in this order, and only the
  /// address depends on the sender.
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

  /// Logs, in the server's log alone, that a sender was refused before any password was checked.
  func logRefusal(of sender: SenderAddress?) {
    if let sender { logger.warning("sign-in refused from \(sender.shown)") }
  }

  /// Writes a line, owned by the actor's account ID: the name may later be another user's, and a
  /// user may have the name that the operator's lines have.
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
    writer.directoryLane.async { [storage] in
      // A line that cannot be written must not undo the action that it records.
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
  /// A page may be empty and still have a name to continue after, if many lines did not match.
  package func auditLines(
    _ query: AuditQuery = AuditQuery()
  ) async throws -> (lines: [AuditLine], last: String?) {
    var lines: [AuditLine] = []
    var after = query.after
    var looked = 0
    let end = query.since.map { Self.name(ofLinesAt: $0) }
    while looked < Self.linesPerCall {
      // In the lane, after the lines that are still queued.
      let range = DirectoryRange(.audit, after: after, isReversed: true, limit: query.size)
      let entries = try await writer.directoryLane.run { [storage] in
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
