/// A promise that the oracle checks, by its number in `Documentation/Reliability.md`.
package enum Guarantee: String, Hashable, Sendable, Codable, CaseIterable {
  case durableSave = "G1 durable save"
  case nothingVanished = "G3 nothing vanished"
  case nothingInvented = "G3 nothing invented"
  case nothingStale = "G4 nothing stale won"
  case convergence = "G5 all devices and the server equal"
  case nothingResurrected = "G6 nothing came back from the dead"
  case noUnaskedDeletion = "G6 no deletion that was not asked for"
  case recovery = "G6 what a deletion overrode is in the recovery list"
  case nothingDoubled = "G7 nothing doubled"
  case graphIntegrity = "G8 the graph is whole"
  case isolation = "G11 nothing of another person"
  case boundedEffort = "G12 no request without a reason"
  case nothingWaits = "G15 nothing waits at calm"
  case liveness = "L the world goes on"
  case determinism = "D nothing left the scheduler"
  case canary = "C the canary"
}

/// A promise that was broken.
package struct Violation: Hashable, Sendable, Codable {
  package var guarantee: Guarantee
  package var text: String
  /// Virtual seconds since the world began.
  package var time: Double
}
