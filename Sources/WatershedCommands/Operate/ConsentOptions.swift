import ArgumentParser
import Effects
import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Options of commands that cannot be undone.
struct ConsentOptions: ParsableArguments {
  @Flag(name: .shortAndLong, help: "Do not ask.")
  var yes = false

  @Flag(help: "Print what would be done, and change nothing.")
  var dryRun = false

  /// Scripts for `cktool` have no `--yes` where it does not ask; it asks only on a terminal.
  static var isCktool: Bool {
    CommandLine.arguments.dropFirst().first { !$0.hasPrefix("-") } == "cktool"
  }

  private struct Trial: Encodable {
    var would: String
  }

  /// Asks on a terminal; without one, `--yes` is required.
  ///
  /// A trial is reported as a remark, and as an object to programs unless the command prints one itself.
  func isGiven(
    to deed: String,
    _ output: OutputOptions,
    reportsTrial: Bool = true
  ) throws -> Bool {
    if dryRun {
      if reportsTrial {
        try output.done("Would \(deed).", Trial(would: deed))
      } else {
        output.remark("Would \(deed).")
      }
      return false
    }
    if yes { return true }
    guard isatty(0) == 1 else {
      guard !Self.isCktool else { return true }
      throw CommandFailure(
        "NOT_CONFIRMED",
        what: "nothing was done",
        why: "this would \(deed), and there is no terminal to confirm it",
        next: "add --yes",
        exit: ExitCodes.usage
      )
    }
    StandardError.write("Really \(deed)? [y/N] ")
    return ["y", "yes"].contains(readLine(strippingNewline: true)?.lowercased() ?? "")
  }
}
