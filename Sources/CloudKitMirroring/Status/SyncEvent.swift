import Foundation

/// One thing that the mirroring did: what, why, with what effect.
package struct SyncEvent: Sendable, Hashable {
  package enum Phase: String, Sendable, Hashable, CaseIterable {
    case setup
    case export
    case `import`
    case merge
    case retry
    case reset
    case schema
  }

  /// The steps that a phase tells of.
  package enum Step: String, Sendable, Hashable {
    case started
    case finished
    case failed
    /// A save, a push or another cause woke the mirroring.
    case woken
    case historyRead
    case batchSent
    case batchSaved
    case batchRepeated
    case pageApplied
    case conflictMerged
    case deleteWon
    case recordParked
    case recordSkipped
    case linkParked
    case zoneLost
    case rereading
    case waiting
  }

  package var storeIdentifier: String
  package var phase: Phase
  package var step: Step
  /// Why it happened, in a few words.
  package var cause: String
  /// What came of it, in a sentence.
  package var effect: String
  package var saved = 0
  package var deleted = 0
  package var inserted = 0
  package var updated = 0
  package var bytes = 0
  /// The records concerned; at most ``nameLimit`` of them.
  package var recordNames: [String] = []
  package var moment: Date
  /// Seconds, for what ended.
  package var duration: Double?

  /// Keeps an event small when thousands of records are concerned.
  package static let nameLimit = 50

  package init(
    storeIdentifier: String,
    phase: Phase,
    step: Step,
    cause: String,
    effect: String,
    moment: Date
  ) {
    self.storeIdentifier = storeIdentifier
    self.phase = phase
    self.step = step
    self.cause = cause
    self.effect = effect
    self.moment = moment
  }
}
