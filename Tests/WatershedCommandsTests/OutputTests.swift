import Foundation
import Testing

/// Output that is not read, or has no space.
@Suite("Output that cannot be written")
struct OutputTests {
  /// Commands that need no server, in every output format.
  static let commands: [[String]] =
    ["text", "json", "ndjson", "env"].flatMap { form in
      [["explain", "--output", form], ["config", "show", "--output", form]]
    } + [
      ["--help"], ["help", "serve"], ["--version"], ["--generate-completion-script", "bash"],
      ["model", "records", "Examples/Posts.xcdatamodeld"], ["demo", "--json"], ["demo"],
      ["demo", "--local", "--model", "Examples/Posts.xcdatamodeld"],
    ]

  @Test(
    "A closed pipe ends a command silently, as SIGPIPE ends other programs",
    arguments: commands
  )
  func closedPipe(arguments: [String]) async throws {
    try await withTemporaryFolder { folder in
      let run = try CommandProcess(
        arguments,
        environment: ["TMPDIR": folder.path],
        outputHasReader: false
      )
      let outcome = try await run.finish()
      #expect(outcome.exitCode == 141)
      #expect(outcome.errors.isEmpty, "\(outcome.errors)")
      // The demo removes its files.
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
    }
  }

  @Test(
    "A full or closed output causes one line and exit code 74",
    arguments: commands,
    ["> /dev/full", ">&-"]
  )
  func fullOutput(arguments: [String], redirection: String) async throws {
    guard FileManager.default.fileExists(atPath: "/dev/full") else { return }
    let shell = URL(fileURLWithPath: "/bin/sh")
    let script = ["-c", "exec \"$0\" \"$@\" \(redirection)", Watershed.program.path]
    let outcome = try await CommandProcess(script + arguments, program: shell).finish()
    #expect(outcome.exitCode == 74)
    #expect(outcome.errors.contains("[OUTPUT_FAILED]"), "\(outcome.errors)")
    #expect(outcome.errors.split(separator: "\n").count == 1, "\(outcome.errors)")
  }

  @Test("Commands that call a server end the same way, and a server without a reader keeps running")
  func server() async throws {
    try await withTemporaryFolder { folder in
      let server = try CommandProcess(
        ["serve", "--json", "--port", "0", "--data", folder.path],
        outputHasReader: false
      )
      #expect(try await server.nextErrorLine()?.contains("the banner was not written") == true)
      let place = ["--data", folder.path]
      // Writes a line to the log.
      #expect(try await CommandProcess(["users", "add", "eve"] + place).finish().exitCode == 0)
      for form in ["text", "json", "ndjson", "env"] {
        for command in [["users", "list"], ["tokens", "list"], ["audit"], ["doctor"]] {
          let run = try CommandProcess(
            command + place + ["--output", form],
            outputHasReader: false
          )
          let outcome = try await run.finish()
          #expect(outcome.exitCode == 141, "\(command) \(form): \(outcome.errors)")
          #expect(outcome.errors.isEmpty, "\(command) \(form): \(outcome.errors)")
        }
      }
      for command in [
        ["schema", "export", "--container-id", "iCloud.org.example.app"], ["cktool", "get-teams"],
      ] {
        let outcome = try await CommandProcess(command + place, outputHasReader: false).finish()
        #expect(outcome.exitCode == 141, "\(command): \(outcome.errors)")
      }
      let listed = try await CommandProcess(["users", "list"] + place).finish()
      #expect(listed.exitCode == 0)
      server.terminate()
      #expect(try await server.finish().exitCode == 0)
    }
  }
}
