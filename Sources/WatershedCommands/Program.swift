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
    if let unknown = UnknownVerb(Array(CommandLine.arguments.dropFirst())) {
      StandardError.print("Error: \(unknown)")
      exit(ExitCodes.usage)
    }
    do {
      var command = try await WatershedCommand.asyncParseAsRoot()
      if var asynchronous = command as? any AsyncParsableCommand {
        try await asynchronous.run()
      } else {
        try command.run()
      }
    } catch let error as StandardOutputError {
      end(error)
    } catch {
      finish(error)
    }
  }

  /// The parser treats a request for help or the version as an error; it is written to standard
  /// output.
  private static func finish(_ error: any Error) -> Never {
    guard WatershedCommand.exitCode(for: error).isSuccess else {
      WatershedCommand.exit(withError: error)
    }
    let text = WatershedCommand.fullMessage(for: error)
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
