import Foundation
import Testing

/// Makes the system calls of operations on stores fail, one after the other; see `FaultRunner` in
/// the program StoreProcess.
///
/// `WATERSHED_FAULTS=all` tests the fault at every call, otherwise at some, chosen at random.
@Suite("Files under faults", .enabled(if: StoreChild.isBuilt, "StoreProcess is not built here."))
struct FileFaultTests {
  private static let scenarios = [
    "create", "open", "save", "cascade", "batchInsert", "batchUpdate", "batchDelete", "lightweight",
    "withoutFiles", "staged", "heavy", "trim", "replace", "restore", "move", "moveOver",
    "moveToBinary", "destroy",
    "saveBinary",
  ]

  private static let isComplete = ProcessInfo.processInfo.environment["WATERSHED_FAULTS"] == "all"

  /// Runs a scenario with a fault at some or all of its calls; any finding fails the test.
  private func run(_ scenario: String, _ fault: String, points: Int?) async throws {
    let folder = try ScratchFolder()
    let points = Self.isComplete ? [] : points.map { ["\($0)"] } ?? []
    let child = try await StoreChild(folder.url, arguments: ["faults", scenario, fault] + points)
    defer { child.end() }
    while true {
      let line = try await child.next()
      guard line.hasPrefix("calls ") else {
        Issue.record("\(line)")
        continue
      }
      // The operation makes calls, and they are counted.
      #expect(!line.hasPrefix("calls 0"))
      #expect(line.hasSuffix("findings 0"), "\(line)")
      return
    }
  }

  @Test(
    "A failing system call leaves the complete old or new store, and a clear error",
    arguments: scenarios
  )
  func failedCall(scenario: String) async throws {
    try await run(scenario, "error", points: 6)
  }

  @Test(
    "A disk that fails permanently leaves the complete old or new store, with its files",
    arguments: scenarios
  )
  func failedDisk(scenario: String) async throws {
    try await run(scenario, "errors", points: 6)
  }

  @Test("A full disk leaves the complete old or new store", arguments: scenarios)
  func fullDisk(scenario: String) async throws {
    try await run(scenario, "full", points: 3)
  }

  /// At every call, because one of the first reads the log.
  @Test(
    "A full disk loses no save in the log of a crashed process",
    arguments: ["open", "destroy"]
  )
  func fullDiskAndLog(scenario: String) async throws {
    try await run(scenario, "full", points: nil)
  }

  @Test("A short write is completed", arguments: scenarios)
  func cutWrite(scenario: String) async throws {
    try await run(scenario, "cut", points: 2)
  }

  @Test(
    "A process that is killed at a system call leaves the complete old or new store",
    arguments: scenarios
  )
  func killed(scenario: String) async throws {
    try await run(scenario, "kill", points: 3)
  }

  @Test(
    "A power failure leaves the complete old or new store, with its files",
    arguments: scenarios,
    ["power", "powerOfSome"]
  )
  func powerFailure(scenario: String, fault: String) async throws {
    try await run(scenario, fault, points: 2)
  }

  @Test(
    "A save of another process that returned is never lost, at whichever system call it comes",
    arguments: [
      "open", "save", "cascade", "batchInsert", "batchUpdate", "batchDelete", "lightweight",
      "withoutFiles", "staged", "trim", "replace", "move", "moveOver", "destroy",
    ]
  )
  func otherProcess(scenario: String) async throws {
    try await run(scenario, "save", points: 4)
  }
}
