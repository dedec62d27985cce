import Foundation
import Testing

@testable import WatershedCommands

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The servers that receive the operator's token.
@Suite("The operator's token")
struct OperatorTokenTests {
  @Test("The note of an ended server is ignored, even if another program has its process ID")
  func staleNote() async throws {
    try await withTemporaryFolder { folder in
      // This process is running, and has no lock on the note.
      let stale = #"{"url":"http://127.0.0.1:1","pid":\#(getpid())}"#
      try Data(stale.utf8).write(to: folder.appendingPathComponent("server.json"))
      #expect(RunningServerNote.read(in: folder) == nil)
      let url = try #require(URL(string: "http://127.0.0.1:2"))
      let note = RunningServerNote(url: url, pid: getpid())
      try note.write(in: folder)
      #expect(RunningServerNote.read(in: folder) == note)
      // Reading the note does not release its lock.
      #expect(RunningServerNote.read(in: folder) == note)
      try note.write(in: folder)
      #expect(RunningServerNote.read(in: folder) == note)
      RunningServerNote.remove(in: folder)
      #expect(RunningServerNote.read(in: folder) == nil)
    }
  }

  @Test("Commands ignore the note of a killed server")
  func killedServer() async throws {
    try await withTemporaryFolder { folder in
      let data = folder.appendingPathComponent("data")
      let server = try CommandProcess("serve", "--json", "--port", "0", "--data", data.path)
      _ = try await server.nextLine()
      #expect(RunningServerNote.read(in: data) != nil)
      server.kill()
      _ = try await server.finish()
      #expect(RunningServerNote.read(in: data) == nil)
      // The command handles the call itself, with the folder.
      let listed = try await CommandProcess.run("users", "list", "--data", data.path)
      #expect(listed.exitCode == 0, "\(listed.errors)")
    }
  }

  @Test(
    "No token is sent to another machine over http: unless the command allows it",
    arguments: [
      "http://192.0.2.1:1", "http://127.0.0.1.example.org:1", "http://localhost.example:1",
    ]
  )
  func plainHTTP(address: String) async throws {
    let refused = try await CommandProcess.run(
      "users",
      "list",
      "--server",
      address,
      "--token",
      "t"
    )
    #expect(refused.exitCode == 64)
    #expect(refused.errors.contains("PLAIN_HTTP"))
    let login = try await CommandProcess(
      ["login", "ada", "--password-stdin", "--server", address],
      input: "secret\n"
    ).finish()
    #expect(login.errors.contains("PLAIN_HTTP"))
  }

  @Test("A local address is recognized, and no name with the same prefix")
  func thisMachine() throws {
    for text in ["http://localhost:1", "http://127.0.0.1:1", "http://127.9.9.9", "http://[::1]:1"] {
      #expect(ServerOptions.isOfThisMachine(try #require(URL(string: text))), "\(text)")
    }
    for text in ["http://127.0.0.1.example", "http://10.0.0.1", "http://127.1", "http://[::2]"] {
      #expect(!ServerOptions.isOfThisMachine(try #require(URL(string: text))), "\(text)")
    }
  }

  @Test(
    "A brief banner has the URL, and no token, password or invitation",
    arguments: [true, false]
  )
  func briefBanner(isJSON: Bool) async throws {
    try await withTemporaryFolder { folder in
      let data = folder.appendingPathComponent("data")
      let server = try CommandProcess(
        ["serve", "--port", "0", "--data", data.path, "--environment", "production"]
          + (isJSON ? ["--json"] : []),
        environment: ["WATERSHED_BANNER": "brief"]
      )
      let line = try #require(try await server.nextLine())
      #expect(line.contains("http://127.0.0.1:"))
      server.terminate()
      let outcome = try await server.finish()
      let all = line + outcome.output
      for word in ["ckAPIToken", "apiToken", "invitation", "password", "Token"] {
        #expect(!all.contains(word), "\(word)")
      }
    }
  }
}
