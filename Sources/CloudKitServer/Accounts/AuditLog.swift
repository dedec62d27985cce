import CloudKitWebServices
import Foundation

/// One line of the audit log: who did what to whom, and when.
package struct AuditLine: Codable, Hashable, Sendable {
  /// Milliseconds since 1970.
  package var time: Int64
  /// Such as `account.delete`.
  package var action: String
  /// The administrator or the person; empty for the server itself.
  package var by: String
  package var about: String
  package var detail: String?
}

extension CloudKitService {
  /// Notes what was done; the line is on the disk before the storage closes.
  func audit(_ action: String, by actor: String, about subject: String, detail: String? = nil) {
    let line = AuditLine(time: now, action: action, by: actor, about: subject, detail: detail)
    // Names sort by time, and no two are equal.
    let digits = String(now)
    let time = String(repeating: "0", count: max(0, 15 - digits.count)) + digits
    let name = "\(time)-\(effects.randomness.bytes(4).hexadecimal)"
    let expires = now + Int64(limits.auditLifetime * 1000)
    writing.async { [storage] in
      // A log that cannot be written must not undo what it tells of.
      guard let body = try? WireCoding.encode(line) else { return }
      var batch = WriteBatch()
      batch.savedEntries = [
        DirectoryEntry(
          DirectoryEntry.Key(.audit, name),
          owner: actor,
          expires: expires,
          body: body
        )
      ]
      try? storage.commit(batch)
    }
  }

  /// The newest lines first, with the name to continue after.
  package func auditLines(
    after name: String? = nil,
    limit: Int = 200
  ) async throws -> (lines: [AuditLine], last: String?) {
    // In the lane, behind the lines that are still to be written.
    let entries = try await writing.run { [storage] in
      try storage.read {
        try $0.entries(DirectoryRange(.audit, after: name, isReversed: true, limit: limit))
      }
    }
    return (
      try entries.map { try WireCoding.decode(AuditLine.self, from: $0.body) },
      entries.count == limit ? entries.last?.key.name : nil
    )
  }
}
