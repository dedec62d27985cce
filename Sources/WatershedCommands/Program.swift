import ArgumentParser
import Effects
import Foundation

/// A run of the program, from its arguments to its exit code.
public enum Program {
  /// Parses the arguments and runs the command that they name.
  ///
  /// It is `WatershedCommand.main()` except for output that cannot be written, the help and
  /// completions included: a closed pipe ends the program without a word and with the code that
  /// shells give to SIGPIPE, anything else with one line and the code 74.
  public static func main() async {
    prepareStandardStreams()
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

  /// A request for help or the version is an error to the parser, and output to everyone else.
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

  /// Ends the program whose output has no reader or no room.
  static func end(_ error: StandardOutputError) -> Never {
    guard !error.isClosedPipe else { exit(ExitCodes.closedPipe) }
    StandardError.print("error: \(error) [OUTPUT_FAILED]")
    exit(ExitCodes.outputFailed)
  }

  /// A closed pipe is an error of `write`, not the end of a server; and no file that is opened later
  /// gets the number of a standard stream that was closed, where output would overwrite it.
  private static func prepareStandardStreams() {
    signal(SIGPIPE, SIG_IGN)
    for stream in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO] where fcntl(stream, F_GETFD) < 0 {
      // The lowest free number is taken: this one. Reading ends at once, and writing to the output
      // fails, as it did when it was closed.
      _ = open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY)
    }
  }
}
