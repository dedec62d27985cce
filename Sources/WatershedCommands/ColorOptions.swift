import ArgumentParser
import Foundation

/// Whether a command may colour its output.
///
/// Every command accepts the flag, so that scripts can pass it to each of them; the demo is the only
/// one that has colours.
struct ColorOptions: ParsableArguments {
  @Flag(help: "No colours; NO_COLOR does the same.")
  var noColor = false

  /// Colours are for terminals, unless the flag or a `NO_COLOR` that is not empty forbids them
  /// (no-color.org).
  func isColored(
    isTerminal: Bool = isatty(STDOUT_FILENO) == 1,
    environment: [String: String] = ProcessInfo.processInfo.environment
  ) -> Bool {
    isTerminal && !noColor && (environment["NO_COLOR"] ?? "").isEmpty
  }
}
