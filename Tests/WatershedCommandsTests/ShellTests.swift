import Foundation
import Testing

/// Commands in a shell: completions, the version, and Ctrl-C.
@Suite("Commands in a shell")
struct ShellTests {
  private static func program(_ name: String) -> URL? {
    ["/usr/bin/", "/bin/", "/usr/local/bin/"].map { $0 + name }
      .first { FileManager.default.isExecutableFile(atPath: $0) }
      .map { URL(fileURLWithPath: $0) }
  }

  @Test("The completions can be parsed by their shell", arguments: ["bash", "zsh", "fish"])
  func completions(shell: String) async throws {
    let script = try await CommandProcess.run("--generate-completion-script", shell)
    #expect(script.exitCode == 0)
    for word in ["serve", "schema", "delete-matching", "get-teams", "container-id"] {
      #expect(script.output.contains(word), "\(word)")
    }
    guard let program = Self.program(shell) else {
      print("\(shell) is not installed: its completions were written, and not read")
      return
    }
    try await withTemporaryFolder { folder in
      let file = folder.appendingPathComponent("completions")
      try Data(script.output.utf8).write(to: file)
      let reading = try await CommandProcess(["-n", file.path], program: program).finish()
      #expect(reading.exitCode == 0, "\(reading.errors)")
    }
  }

  @Test("The version is printed as a line")
  func version() async throws {
    let version = try await CommandProcess.run("--version")
    #expect(version.exitCode == 0)
    #expect(version.output.wholeMatch(of: /\d+\.\d+\.\d+\n/) != nil)
  }

  @Test("Ctrl-C lets a server complete requests and ends it with 130; a kill ends it with 0")
  func interruptedServer() async throws {
    try await withTemporaryFolder { folder in
      let data = folder.appendingPathComponent("data").path
      for _ in 0..<2 {
        let server = try CommandProcess("serve", "--json", "--port", "0", "--data", data)
        _ = try await server.nextLine()
        server.interrupt()
        #expect(try await server.finish().exitCode == 130)
        // It had released the folder and reported it.
        let listed = try await CommandProcess.run("users", "list", "--data", data)
        #expect(listed.exitCode == 0)
      }
      let server = try CommandProcess("serve", "--json", "--port", "0", "--data", data)
      _ = try await server.nextLine()
      server.terminate()
      #expect(try await server.finish().exitCode == 0)
    }
  }

  @Test("Ctrl-C on the demo leaves no files and reports what was not done")
  func interruptedDemo() async throws {
    try await withTemporaryFolder { folder in
      let demo = try CommandProcess(
        ["demo", "--json", "--step"],
        environment: ["TMPDIR": folder.path],
        // The demo waits for a line that is never written.
        holdsInput: true
      )
      while let line = try await demo.nextLine(), !line.contains(#""what":"waits""#) {}
      demo.interrupt()
      let outcome = try await demo.finish()
      #expect(outcome.exitCode == 130)
      #expect(outcome.errors.contains("[INTERRUPTED]"))
      #expect(outcome.errors.contains("the demo did not end"))
      let left = try FileManager.default.contentsOfDirectory(atPath: folder.path)
      #expect(left.filter { $0.hasPrefix("watershed-demo") }.isEmpty)
    }
  }
}
