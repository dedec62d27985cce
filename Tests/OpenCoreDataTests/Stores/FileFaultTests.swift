import Foundation
import Testing

/// The system calls of operations on stores fail, one after the other; see `FaultRunner` in the program
/// StoreProcess.
///
/// `WATERSHED_FAULTS=all` gives every call the fault, else some of them, chosen at random.
@Suite("Files under failure", .enabled(if: StoreChild.isBuilt, "StoreProcess is not built here."))
struct FileFaultTests {
  private static let scenarios = [
    "create", "open", "save", "cascade", "batchInsert", "batchUpdate", "batchDelete", "lightweight",
    "staged", "heavy", "trim", "replace", "restore", "move", "moveOver", "moveToBinary", "destroy",
    "saveBinary",
  ]

  private static let isComplete = ProcessInfo.processInfo.environment["WATERSHED_FAULTS"] == "all"

  /// Runs a scenario with a fault at some of its calls, or at all; what is found fails the test.
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
      // The operation makes calls, and they were counted.
      #expect(!line.hasPrefix("calls 0"))
      #expect(line.hasSuffix("findings 0"), "\(line)")
      return
    }
  }

  @Test(
    "A system call that fails leaves the old store or the new one, whole, and a clear error",
    arguments: scenarios
  )
  func failedCall(scenario: String) async throws {
    try await run(scenario, "error", points: 6)
  }

  @Test(
    "A disk that fails for good leaves the old store or the new one, whole, with its files",
    arguments: scenarios
  )
  func failedDisk(scenario: String) async throws {
    try await run(scenario, "errors", points: 6)
  }

  @Test("A full disk leaves the old store or the new one, whole", arguments: scenarios)
  func fullDisk(scenario: String) async throws {
    try await run(scenario, "full", points: 3)
  }

  /// At each call: one that is needed to read the log is among the first.
  @Test(
    "A full disk takes no save out of the log of a process that died",
    arguments: ["open", "destroy"]
  )
  func fullDiskAndLog(scenario: String) async throws {
    try await run(scenario, "full", points: nil)
  }

  @Test("A write that is cut short is completed", arguments: scenarios)
  func cutWrite(scenario: String) async throws {
    try await run(scenario, "cut", points: 2)
  }

  @Test(
    "A process that is killed at a system call leaves the old store or the new one, whole",
    arguments: scenarios
  )
  func killed(scenario: String) async throws {
    try await run(scenario, "kill", points: 3)
  }

  @Test(
    "A save of another process that returned is never lost, at whichever system call it comes",
    arguments: [
      "open", "save", "cascade", "batchInsert", "batchUpdate", "batchDelete", "lightweight",
      "staged", "trim", "replace", "move", "moveOver", "destroy",
    ]
  )
  func otherProcess(scenario: String) async throws {
    try await run(scenario, "save", points: 4)
  }
}
