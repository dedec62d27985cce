import Foundation

/// One action of the mirroring: what, why, with which effect.
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

  /// The steps of a phase.
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
    case zoneLost
    case rereading
    case waiting
  }

  package var storeIdentifier: String
  package var phase: Phase
  package var step: Step
  /// The reason for the step, in a few words.
  package var cause: String
  /// The result of the step, in a sentence.
  package var effect: String
  package var saved = 0
  package var deleted = 0
  package var inserted = 0
  package var updated = 0
  package var bytes = 0
  /// The affected records; at most ``nameLimit`` of them.
  package var recordNames: [String] = []
  package var moment: Date
  /// The duration in seconds, for steps that ended.
  package var duration: Double?

  /// Limits the size of an event that affects thousands of records.
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
