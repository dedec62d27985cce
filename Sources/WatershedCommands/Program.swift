import ArgumentParser
import Effects
import Foundation

/// One run of the program, from its arguments to its exit code.
public enum Program {
  /// Parses the arguments and runs the command that they name.
  ///
  /// It is `WatershedCommand.main()` except for output that cannot be written, including the help
  /// and completions: a closed pipe ends the program silently with the code that shells use for
  /// SIGPIPE, any other error with one line and the code 74.
  public static func main() async {
    prepareStandardStreams()
    let arguments = Array(CommandLine.arguments.dropFirst())
    if let unknown = UnknownVerb(arguments) { refuse("\(unknown)") }
    if let cluster = HelpCluster(arguments) { refuse("\(cluster)") }
    do {
      let command = try await WatershedCommand.asyncParseAsRoot()
      do {
        try await run(command)
      } catch let error as ValidationError {
        refuse(error.message, usageOf: type(of: command))
      }
    } catch let error as StandardOutputError {
      end(error)
    } catch {
      finish(error)
    }
  }

  private static func run(_ command: any ParsableCommand) async throws {
    if var asynchronous = command as? any AsyncParsableCommand {
      try await asynchronous.run()
    } else {
      var command = command
      try command.run()
    }
  }

  /// Ends the program because of its arguments; with the usage of a command that has read them.
  private static func refuse(
    _ message: String,
    usageOf command: (any ParsableCommand.Type)? = nil
  ) -> Never {
    StandardError.print("Error: \(message)")
    if let command {
      let usage = WatershedCommand.usageString(for: command)
      let name = UnknownVerb.path(of: command).joined(separator: " ")
      StandardError.print("Usage: \(usage)\n  See '\(name) --help' for more information.")
    }
    exit(ExitCodes.usage)
  }

  /// The parser treats a request for help or the version as an error; it is written to standard
  /// output.
  private static func finish(_ error: any Error) -> Never {
    let text = WatershedCommand.fullMessage(for: error)
    let code = WatershedCommand.exitCode(for: error)
    guard code.isSuccess else {
      if text.contains("Missing value for") {
        StandardError.print(text + "\n  " + HelpCluster.advice)
        exit(code.rawValue)
      }
      WatershedCommand.exit(withError: error)
    }
    do throws(StandardOutputError) {
      if !text.isEmpty { try StandardOutput.print(text) }
      exit(ExitCode.success.rawValue)
    } catch {
      end(error)
    }
  }

  /// Ends the program after an error of standard output.
  static func end(_ error: StandardOutputError) -> Never {
    guard !error.isClosedPipe else { exit(ExitCodes.closedPipe) }
    StandardError.print("error: \(error) [OUTPUT_FAILED]")
    exit(ExitCodes.outputFailed)
  }

  /// Makes a closed pipe an error of `write` instead of a signal, and prevents a file that is
  /// opened later from getting the descriptor of a closed standard stream, where output would
  /// overwrite it.
  private static func prepareStandardStreams() {
    signal(SIGPIPE, SIG_IGN)
    for stream in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO] where fcntl(stream, F_GETFD) < 0 {
      // `open` returns the lowest free descriptor: this one. Reading returns the end of the file,
      // and writing to the output fails, as when it was closed.
      _ = open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY)
    }
  }
}
