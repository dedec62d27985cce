import CloudKitWebServices
import Effects
import Foundation
import Logging
import Synchronization

/// The log of actions on accounts and on the server, in the storage.
package final class AuditLog: Sendable {
  private let storage: any Storage
  private let writer: StorageWriter
  private let limits: ServiceLimits
  private let effects: Effects
  private let logger: Logger
  private let failures = Mutex(AuditedFailures())

  init(
    storage: any Storage,
    writer: StorageWriter,
    limits: ServiceLimits,
    effects: Effects,
    logger: Logger
  ) {
    self.storage = storage
    self.writer = writer
    self.limits = limits
    self.effects = effects
    self.logger = logger
  }

  /// Milliseconds since 1970.
  private var now: Int64 { effects.now.wireMilliseconds }

  /// The number of lines that one call examines before it returns those found, and a name to
  /// continue after.
  private static let linesPerCall = 10_000

  /// Writes a line; it is durable before the storage closes.
  @discardableResult
  func record(
    _ action: String,
    by actor: String,
    about subject: String,
    detail: String? = nil,
    from sender: SenderAddress? = nil,
    device: String? = nil,
    isOperator: Bool = false
  ) -> AuditTrace {
    write(
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
    return AuditTrace()
  }

  /// Writes a line about an administrator's action, whose reply requires the result.
  func record(
    _ action: String,
    by call: AdminCall,
    about subject: String,
    detail: String? = nil,
    device: String? = nil
  ) -> AuditTrace {
    record(
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
  func recordFailure(_ account: StoredAccount?, from sender: SenderAddress?, detail: String) {
    if let sender { logger.warning("sign-in failed from \(sender.shown)") }
    let time = now
    let isKept = failures.withLock { count in
      count.keepsLine(of: account?.id, from: sender, now: time, limits)
    }
    guard isKept else { return }
    write(
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
  private func write(_ line: AuditLine, lifetime: Double, isOperator: Bool = false) {
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
  package func lines(
    _ query: AuditQuery = AuditQuery()
  ) async throws -> (lines: [AuditLine], last: String?) {
    var lines: [AuditLine] = []
    var after = query.after
    var looked = 0
    let end = query.since.map { Self.name(ofLinesAt: $0) }
    while looked < Self.linesPerCall {
      // The lane orders the read after the lines that are still queued.
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

/// Shows that an admin call has a line in the audit log, or states why it has none.
struct AuditTrace: Sendable {
  fileprivate init() {}

  /// For a call without a line of its own.
  static func unaudited(_ reason: Unaudited) -> AuditTrace { AuditTrace() }

  enum Unaudited {
    /// It changes nothing, and returns no data of a user.
    case reads
    /// It changes nothing, and returns data of users, as the log of the calls itself and records do.
    case looksUp
    /// It continues a call that has a line.
    case continues
    /// It does what the server does by itself.
    case routine
  }
}
