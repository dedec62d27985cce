import Foundation

/// The seed of random tests: the same in each run, so that a failure repeats.
enum TestSeed {
  /// `WATERSHED_FUZZ_SEED` sets another.
  static let value =
    ProcessInfo.processInfo.environment["WATERSHED_FUZZ_SEED"].flatMap { UInt64($0) } ?? 1
}
