import Foundation

/// The seed of random tests: the same in each run, so that what is red once is red again.
enum TestSeed {
  /// `WATERSHED_FUZZ_SEED` names another.
  static let value =
    ProcessInfo.processInfo.environment["WATERSHED_FUZZ_SEED"].flatMap { UInt64($0) } ?? 1
}
