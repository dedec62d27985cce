import ArgumentParser
import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// For what cannot be undone.
struct ConsentOptions: ParsableArguments {
  @Flag(name: .shortAndLong, help: "Do not ask.")
  var yes = false

  @Flag(help: "Only say what would be done.")
  var dryRun = false

  /// Asks on a terminal; without one, `--yes` is the only way to say it.
  func isGiven(to deed: String, _ output: OutputOptions) throws -> Bool {
    if dryRun {
      output.remark("Would \(deed).")
      return false
    }
    if yes { return true }
    guard isatty(0) == 1 else {
      throw CommandFailure(
        "NOT_CONFIRMED",
        what: "nothing was done",
        why: "this would \(deed), and nobody can be asked",
        next: "add --yes",
        exit: ExitCodes.usage
      )
    }
    FileHandle.standardError.write(Data("Really \(deed)? [y/N] ".utf8))
    return ["y", "yes"].contains(readLine(strippingNewline: true)?.lowercased() ?? "")
  }
}
