import Foundation
import RawSQLite

/// The durations and the sums of one run of the workload.
public final class WorkloadResult: Codable {
  /// Seconds by phase.
  public var seconds: [Phase: Double]
  /// The sums of the values that were read, which have to be equal for all engines.
  public var sums: [String: Int64]
  /// The peak memory of the process, in megabytes.
  public var peakMegabytes = 0

  /// Creates a result.
  public init(seconds: [Phase: Double] = [:], sums: [String: Int64] = [:]) {
    self.seconds = seconds
    self.sums = sums
  }

  /// Makes all engines measure the process's processor time instead of the elapsed time.
  public static func measureProcessorTime() { raw_sqlite_measure_processor_time() }

  /// Adds the duration of the body to a phase.
  public func measure(_ phase: Phase, _ body: () throws -> Void) rethrows {
    let start = raw_sqlite_now()
    try body()
    seconds[phase, default: 0] += raw_sqlite_now() - start
  }
}

/// A part of the workload that is measured on its own.
public enum Phase: String, CaseIterable, Codable, Sendable {
  case insert
  case fetch
  case byID = "by id, cold"
  case byIDCached = "by id, row cache"
  case traverse = "traverse, cold"
  case traverseWarm = "traverse, warm"
  case traversePrefetched = "traverse, prefetched"
  case traverseNSSet = "traverse, NSSet"
  case update
  case delete
  case batchHandler = "batch insert, handler"
  case batchDictionaries = "batch insert, dictionaries"

  /// The phase of the raw engine to compare with.
  public var rawPhase: Phase {
    switch self {
    case .byIDCached: .byID
    case .traverseWarm, .traversePrefetched, .traverseNSSet: .traverse
    case .batchDictionaries: .batchHandler
    default: self
    }
  }

  /// The targeted ratio to the raw engine; nil if there is no target.
  public var target: Double? {
    switch self {
    case .insert, .fetch, .byID, .update, .delete: 2
    case .byIDCached: 0.5
    case .traverse: 1.5
    case .traverseWarm, .traversePrefetched: 0.3
    case .batchHandler: 1.3
    case .batchDictionaries: 1.6
    case .traverseNSSet: nil
    }
  }
}
