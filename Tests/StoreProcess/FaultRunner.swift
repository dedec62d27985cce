import Effects
import Foundation
import OpenCoreData
import SystemCallFaults

/// Runs an operation on stores repeatedly, each time with a fault at another of its system calls,
/// and checks the stores afterwards.
///
/// They must be the old ones or the new ones, whole, with their files; the new ones where the operation
/// returned. What fails must fail with a Cocoa error, and run once more without a fault succeed. What a
/// process that is killed leaves beside the stores is gone then.
struct FaultRunner {
  /// The fault at a system call.
  enum Fault: String {
    /// The call fails with EIO.
    case error
    /// The call and all later ones fail with EIO: for the files this is like a crash at the call.
    case errors
    /// The call fails with ENOSPC, and so do all later ones that need space.
    case full
    /// A write writes half of its bytes.
    case cut
    /// The process is killed before the call.
    case kill
    /// The power fails before the call: of each file the content is left that was last brought to the disk, under
    /// the names of that moment.
    case power
    /// The power fails before the call: some files have the content of that moment, the others as with `power`.
    case powerOfSome
    /// Another process saves before the call.
    case save

    var isPowerFailure: Bool { self == .power || self == .powerOfSome }
  }

  let folder: URL
  let scenario: FaultScenario
  let fault: Fault
  /// The number of calls that get the fault, evenly distributed; nil for all.
  let points: Int?

  private var template: URL { folder.appendingPathComponent("template") }
  private var work: URL { folder.appendingPathComponent("work") }
  private var synced: SyncedFiles {
    SyncedFiles(copies: folder.appendingPathComponent("synced"))
  }

  /// A defect found at a call.
  private struct Finding: Error {
    let text: String
  }

  /// Prints a line for each finding, then `calls N points N refused N findings N`.
  func run() throws {
    try FileManager.default.createDirectory(at: template, withIntermediateDirectories: true)
    try scenario.prepare(template)
    let old = try state { _ in }
    let calls = try countCalls()
    let new = try FaultState(folder: work)
    let neighbours = fault == .save ? scenario.neighbours : [("", false)]
    var (tried, refused, findings) = (0, 0, 0)
    for neighbour in neighbours {
      // The power may also fail right after the operation.
      for number in points(of: calls) + (fault.isPowerFailure ? [calls + 1] : []) {
        tried += 1
        do {
          if try !probe(number, neighbour, old, new) { refused += 1 }
        } catch {
          findings += 1
          let text = (error as? Finding)?.text ?? "\(error)"
          let line = text.replacing("\n", with: " | ")
          say("\(scenario) \(fault) \(neighbour.file) at call \(number) of \(calls): \(line)")
        }
      }
    }
    say("calls \(calls) points \(tried) refused \(refused) findings \(findings)")
  }

  private func points(of calls: Int) -> [Int] {
    guard calls > 0 else { return [] }
    guard let points, points < calls else { return Array(1...calls) }
    return (0..<points).map { index in
      let (first, last) = (index * calls / points + 1, (index + 1) * calls / points)
      return Int.random(in: first...last)
    }
  }

  private func begin() throws {
    try FileSystem.removeFolder(work.path)
    try FileManager.default.copyItem(at: template, to: work)
  }

  /// The state of a new copy of the stores after a body.
  private func state(_ body: (URL) throws -> Void) throws -> FaultState {
    try begin()
    try body(work)
    return try FaultState(folder: work)
  }

  private func countCalls() throws -> Int {
    try begin()
    arm(0, system_call_none)
    defer { system_calls_disarm() }
    try scenario.run(work)
    return system_calls_disarm()
  }

  private func arm(
    _ number: Int,
    _ kind: system_call_fault,
    error: Int32 = 0,
    isSticky: Bool = false,
    callback: (@convention(c) () -> Void)? = nil
  ) {
    system_calls_arm(
      work.path,
      number,
      // Also when counting: the calls that can write less.
      fault == .cut ? system_call_is_cut : kind,
      error,
      isSticky ? 1 : 0,
      fault == .full ? 1 : 0,
      callback
    )
  }

  // MARK: One call

  /// Runs the operation with the fault at one call; returns false if it failed.
  private func probe(
    _ number: Int,
    _ neighbour: (file: String, mustStay: Bool),
    _ old: FaultState,
    _ new: FaultState
  ) throws -> Bool {
    try begin()
    let failure = try attempt(number, neighbour.file)
    if fault.isPowerFailure { try synced.apply(to: work, keepingSome: fault == .powerOfSome) }
    let saved = FaultMoment.shared.saved
    let found = try FaultState(folder: work)
    if let failure { try check(failure) }
    // A commit may be lost with the power: in WAL mode it is not brought to the disk (sqlite.org/pragma.html,
    // synchronous = NORMAL).
    guard found == new || (failure != nil || fault.isPowerFailure) && found == old else {
      throw Finding(
        text: """
          \(failure == nil ? "the operation returned" : "the operation failed"), and the stores \
          are neither the old nor the new ones:
          \(Self.difference(found, old, new))
          """
      )
    }
    if saved, neighbour.mustStay, found.others.isEmpty {
      throw Finding(text: "the save of the other process is lost")
    }
    if failure != nil, found == old || scenario.isRepeatable {
      try requireRetry(new, after: saved && neighbour.mustStay)
    }
    return failure == nil
  }

  private func attempt(_ number: Int, _ file: String) throws -> NSError? {
    FaultMoment.shared.saved = false
    switch fault {
    case .error: arm(number, system_call_fails, error: EIO)
    case .errors: arm(number, system_call_fails, error: EIO, isSticky: true)
    case .full: arm(number, system_call_fails, error: ENOSPC, isSticky: true)
    case .cut: arm(number, system_call_is_cut)
    case .kill, .power, .powerOfSome: return try attemptInChild(number)
    case .save:
      FaultMoment.shared.url = work.appendingPathComponent(file)
      arm(number, system_call_calls_back) { FaultMoment.shared.save() }
    }
    defer { system_calls_disarm() }
    do {
      try scenario.run(work)
      return nil
    } catch {
      return error as NSError
    }
  }

  private func attemptInChild(_ number: Int) throws -> NSError? {
    let child = Process()
    child.executableURL = URL(fileURLWithPath: CommandLine.arguments[0])
    child.arguments = [folder.path, "killed", scenario.rawValue, "\(number)"]
    if fault.isPowerFailure {
      try synced.begin(with: work)
      child.arguments?.append("power")
    }
    try child.run()
    child.waitUntilExit()
    if child.terminationReason == .exit, child.terminationStatus == 0 { return nil }
    guard child.terminationReason == .uncaughtSignal, child.terminationStatus == SIGKILL else {
      throw Finding(text: "the child ended with \(child.terminationStatus)")
    }
    return NSError(domain: NSCocoaErrorDomain, code: 1)
  }

  /// In the child process: runs the operation until the call.
  func runUntilKilled(at number: Int) throws {
    if fault.isPowerFailure { system_calls_keep_synced(synced.copies.path) }
    arm(number, system_call_ends_process)
    try scenario.run(work)
  }

  private func check(_ error: NSError) throws {
    let codes = 0..<200_000
    guard error.domain == NSCocoaErrorDomain, codes.contains(error.code),
      !error.localizedDescription.isEmpty
    else { throw Finding(text: "the error is not one of Cocoa's: \(error)") }
  }

  private func requireRetry(_ new: FaultState, after saved: Bool) throws {
    do {
      try scenario.run(work)
    } catch {
      throw Finding(text: "once more without a fault it fails: \(error)")
    }
    let found = try FaultState(folder: work)
    guard found == new else {
      throw Finding(text: "once more without a fault:\n\(Self.difference(found, new, new))")
    }
    if saved, found.others.isEmpty {
      throw Finding(text: "once more without a fault the save of the other process is lost")
    }
    if fault == .kill || fault.isPowerFailure, let draft = try drafts().first {
      throw Finding(text: "once more without a fault: the killed process has left \(draft)")
    }
  }

  /// The drafts of stores that are still there, by their names, which begin with a UUID.
  private func drafts() throws -> [String] {
    try FileSystem.names(in: work.path).filter { name in
      UUID(uuidString: String(name.drop { $0 == "." }.prefix(36))) != nil
    }
  }

  private static func difference(
    _ found: FaultState,
    _ old: FaultState,
    _ new: FaultState
  )
    -> String
  {
    let known = Set(old.lines + new.lines)
    let strange = found.lines.filter { !known.contains($0) }.map { "  found \($0)" }
    let missing = { (lines: [String], name: String) in
      lines.filter { !found.lines.contains($0) }.map { "  \(name) has \($0)" }
    }
    return (strange + missing(old.lines, "old") + missing(new.lines, "new")).prefix(12)
      .joined(separator: "\n")
  }

  private func say(_ line: String) {
    FileHandle.standardOutput.write(Data((line + "\n").utf8))
  }
}

/// The state that the callback of a system call needs.
final class FaultMoment: @unchecked Sendable {
  // Unchecked: used by one thread at a time, the operation's.
  static let shared = FaultMoment()

  var url = URL(fileURLWithPath: "/")
  var saved = false
  private var number = 0
  private lazy var neighbour = try? FaultNeighbour()

  func save() {
    number += 1
    saved = neighbour?.save("\(FaultState.otherPrefix)\(number)", to: url) ?? false
  }
}
