/// The results of a batch.
package struct BatchSettlement: Hashable, Sendable {
  package var saved: [String] = []
  package var deleted: [String] = []
  /// Conflicts that were merged and are pending again.
  package var merged: [String] = []
  /// Records that the server had and no longer has; the feed has the reason.
  package var vanished: [String] = []
  /// Whether the server lacked what the batch was to delete; the feed has the reason.
  package var hasVanishedDeletions = false
  /// Records of which the server has an older copy than the last agreed one: it may have been
  /// restored from a backup, which the feed shows.
  package var outdated: [String] = []
  /// Records that the server refused, with its reasons.
  package var refused: [String: String] = [:]
  /// The number of records that are pending again because another one failed.
  package var requeued = 0
  /// The number of one-record requests that the server refused since it last accepted anything.
  var refusedInARow = 0
  /// Whether the database has room.
  var room = Room.unknown
  /// Records that are looked up: the reply is older than what an import has brought since.
  package var doubtful: [String] = []
  /// The delay before a retry that the server requested, in seconds.
  package var retryAfter: Double?
  package var mustWait = false
  /// Files that are no longer needed.
  package var files: [String] = []

  /// How an export frees space in a full database.
  enum Room: Hashable, Sendable {
    case unknown
    /// It is full: deletions are sent first.
    case deleting
    /// All deletions have been sent.
    case deleted
  }

  package init() {}

  /// Whether the number of pending changes decreased.
  var isProgress: Bool { !saved.isEmpty || !deleted.isEmpty || !refused.isEmpty }

  /// Records a change that stays pending because the server asked to retry later.
  mutating func postpone(seconds: Double?) {
    requeued += 1
    mustWait = true
    retryAfter = max(retryAfter ?? 0, seconds ?? 0)
  }

  /// Adds the results of a batch to those of its export, which reports them at its end; the batch's files and
  /// delays are handled with the batch.
  mutating func add(_ batch: BatchSettlement) {
    saved += batch.saved
    deleted += batch.deleted
    merged += batch.merged
    refused.merge(batch.refused) { _, latest in latest }
    vanished += batch.vanished
    outdated += batch.outdated
  }

  /// Adds the results of another part of the batch.
  static func += (total: inout BatchSettlement, part: BatchSettlement) {
    total.saved += part.saved
    total.deleted += part.deleted
    total.merged += part.merged
    total.vanished += part.vanished
    total.hasVanishedDeletions = total.hasVanishedDeletions || part.hasVanishedDeletions
    total.outdated += part.outdated
    total.refused.merge(part.refused) { _, latest in latest }
    total.requeued += part.requeued
    total.doubtful += part.doubtful
    if part.mustWait { total.retryAfter = max(total.retryAfter ?? 0, part.retryAfter ?? 0) }
    total.mustWait = total.mustWait || part.mustWait
    total.files += part.files
  }
}

extension CloudOutcome {
  /// The server's copy of a record that is in conflict, if the reply has it.
  var serverCopy: CloudRecord? {
    switch self {
    case .conflict(let record), .exists(let record): record
    default: nil
    }
  }
}
