/// A promise that the oracle checks, by its number in `Documentation/Reliability.md`.
package enum Guarantee: String, Hashable, Sendable, Codable, CaseIterable {
  case durableSave = "G1 durable save"
  case nothingVanished = "G3 no value is lost"
  case nothingInvented = "G3 no value is invented"
  case nothingStale = "G4 no stale value replaces a newer one"
  case convergence = "G5 all devices and the server agree"
  case nothingResurrected = "G6 no deleted object is resurrected"
  case noUnaskedDeletion = "G6 no deletion that no device made"
  case recovery = "G6 an overridden edit is in the recovery list"
  case nothingDoubled = "G7 no object is duplicated"
  case graphIntegrity = "G8 relationships are consistent"
  case isolation = "G11 no data of another user"
  case boundedEffort = "G12 no request without a reason"
  case nothingWaits = "G15 nothing is pending after a quiet period"
  case liveness = "L all devices agree within the bound"
  case determinism = "D all tasks run on the scheduler"
  case canary = "C the planted bug is found"
}

/// A broken promise, found in a run.
package struct Violation: Hashable, Sendable, Codable {
  package var guarantee: Guarantee
  package var text: String
  /// Virtual seconds since the world began.
  package var time: Double
}
