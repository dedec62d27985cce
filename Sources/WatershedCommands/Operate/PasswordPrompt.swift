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

/// Reads a password without echoing it.
enum PasswordPrompt {
  /// Reads the first line of standard input; on a terminal it prompts, unless `fromInput` is set.
  static func read(fromInput: Bool) throws -> String? {
    if fromInput { return readLine(strippingNewline: true) }
    guard isatty(STDIN_FILENO) == 1 else {
      throw ValidationError(
        "There is no terminal to ask for the password; give it with --password-stdin."
      )
    }
    StandardError.write("Password: ")
    defer { StandardError.write("\n") }
    var shown = termios()
    guard tcgetattr(STDIN_FILENO, &shown) == 0 else { return readLine(strippingNewline: true) }
    var hidden = shown
    hidden.c_lflag &= ~tcflag_t(ECHO)
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden)
    defer { tcsetattr(STDIN_FILENO, TCSAFLUSH, &shown) }
    return readLine(strippingNewline: true)
  }
}
