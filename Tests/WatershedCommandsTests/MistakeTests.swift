import CloudKitServer
import Foundation
import Testing

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// What commands answer to an operator's mistakes: the cause and the next step, and no side effect.
@Suite("Mistakes of operators")
struct MistakeTests {
  /// Runs a command as a user without access to the folder.
  private func runWithoutRights(
    _ arguments: [String],
    on folder: URL
  ) async throws -> CommandProcess.Outcome {
    // Superusers may read everything, so the command is run as another user.
    guard geteuid() == 0 else { return try await CommandProcess(arguments).finish() }
    let program = URL(fileURLWithPath: "/usr/bin/setpriv")
    let user = ["--reuid", "65534", "--regid", "65534", "--clear-groups"]
    return try await CommandProcess(
      user + [Watershed.program.path] + arguments,
      program: program
    ).finish()
  }

  @Test("A folder that the user may not read is reported as such, and not as missing data")
  func rights() async throws {
    try await withTemporaryFolder { folder in
      try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder.path)
      let data = folder.appendingPathComponent("data")
      try await makeData(in: data.path)
      let copy = folder.appendingPathComponent("copy")
      let made = try await CommandProcess.run("backup", "create", copy.path, "--data", data.path)
      try #require(made.exitCode == 0, "\(made.errors)")
      let file = folder.appendingPathComponent("watershed.json")
      try Data("{}".utf8).write(to: file)
      for place in [data, copy, file] {
        try FileManager.default.setAttributes([.posixPermissions: 0], ofItemAtPath: place.path)
      }
      let commands = [
        ["users", "list", "--data", data.path], ["doctor", "--data", data.path],
        ["backup", "verify", copy.path], ["config", "check", "--config", file.path],
      ]
      for command in commands {
        let refused = try await runWithoutRights(command, on: folder)
        let text = refused.output + refused.errors
        #expect(refused.exitCode != 0, "\(command)")
        #expect(text.contains("Permission denied"), "\(command): \(text)")
        #expect(!text.contains("no server"), "\(command): \(text)")
        #expect(!text.contains("not a backup"), "\(command): \(text)")
      }
      for place in [data, copy, file] {
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: place.path)
      }
    }
  }

  @Test(
    "What a command of root does on a service's stopped server, the service's user can read",
    .enabled(if: geteuid() == 0, "needs root")
  )
  func commandsOfRoot() async throws {
    try await withTemporaryFolder { folder in
      try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder.path)
      let data = folder.appendingPathComponent("data")
      try await makeData(in: data.path)
      let names = try FileManager.default.subpathsOfDirectory(atPath: data.path)
      for path in [data.path] + names.map({ "\(data.path)/\($0)" }) {
        try #require(chown(path, 65534, 65534) == 0)
      }
      let copy = folder.appendingPathComponent("copy").path
      for command in [["server", "rotate-key", "--yes"], ["backup", "create", copy]] {
        let run = try await CommandProcess(command + ["--data", data.path]).finish()
        try #require(run.exitCode == 0, "\(run.errors)")
      }
      let users = try await runWithoutRights(["users", "list", "--data", data.path], on: folder)
      #expect(users.exitCode == 0, "\(users.errors)")
      let doctor = try await runWithoutRights(["doctor", "--data", data.path], on: folder)
      #expect(doctor.exitCode == 0, "\(doctor.output)")
      // As an earlier release, or `cp`, leaves it.
      let keys = data.appendingPathComponent("field-keys.json").path
      try #require(chown(keys, 0, 0) == 0)
      let found = try await CommandProcess.run("doctor", "--data", data.path)
      #expect(found.exitCode == 2, "\(found.output)")
      #expect(found.output.contains("chown -R --reference="), "\(found.output)")
      let refused = try await runWithoutRights(["users", "list", "--data", data.path], on: folder)
      #expect(refused.errors.contains("\(keys) cannot be read"), "\(refused.errors)")
      #expect(!refused.errors.contains("adopt"), "\(refused.errors)")
    }
  }

  @Test("A server makes no new database beside the keys or the files of another one")
  func orphanedFolder() async throws {
    try await withTemporaryFolder { folder in
      let data = folder.appendingPathComponent("data")
      try await makeData(in: data.path)
      let database = data.appendingPathComponent("watershed.sqlite")
      for suffix in ["", "-wal", "-shm"] {
        try? FileManager.default.removeItem(atPath: database.path + suffix)
      }
      let refused = try await CommandProcess.run("serve", "--port", "0", "--data", data.path)
      #expect(refused.exitCode == 1)
      #expect(refused.errors.contains("--database"), "\(refused.errors)")
      #expect(!FileManager.default.fileExists(atPath: database.path))
      // An empty file is what a copy that broke off leaves, and `sqlite3` that was to look.
      try Data().write(to: database)
      let log = Data("what may be left of the data".utf8)
      try log.write(to: URL(fileURLWithPath: database.path + "-wal"))
      for command in [["serve", "--port", "0"], ["users", "list"], ["assets", "check"]] {
        let run = try await CommandProcess(command + ["--data", data.path]).finish()
        #expect(run.exitCode == 1, "\(command): \(run.output)")
        #expect(run.errors.contains("missing or empty"), "\(command): \(run.errors)")
      }
      let doctor = try await CommandProcess.run("doctor", "--data", data.path)
      #expect(doctor.exitCode == 2)
      #expect(doctor.output.contains("backup restore BACKUP"), "\(doctor.output)")
      #expect(try Data(contentsOf: database).isEmpty)
      #expect(try Data(contentsOf: URL(fileURLWithPath: database.path + "-wal")) == log)
    }
  }

  @Test("A trial of a restore finds what the restore would refuse")
  func trial() async throws {
    try await withTemporaryFolder { folder in
      let data = folder.appendingPathComponent("data").path
      try await makeData(in: data)
      let copy = folder.appendingPathComponent("copy").path
      let made = try await CommandProcess.run("backup", "create", copy, "--data", data)
      try #require(made.exitCode == 0, "\(made.errors)")
      func restore(to target: String) async throws -> CommandProcess.Outcome {
        try await CommandProcess.run("backup", "restore", copy, "--data", target, "--dry-run")
      }
      let new = folder.appendingPathComponent("new").path
      #expect(try await restore(to: new).exitCode == 0)
      let taken = try await restore(to: data)
      #expect(taken.exitCode == 1, "\(taken.errors)")
      #expect(taken.errors.contains("is not empty"), "\(taken.errors)")
      let lock = try DataFolderLock(creating: URL(fileURLWithPath: data))
      let used = try await restore(to: data)
      lock.release()
      #expect(used.errors.contains("[UNUSABLE_DATA]"), "\(used.errors)")
      try FileManager.default.removeItem(atPath: copy + "/field-keys.json")
      let damaged = try await restore(to: new)
      #expect(damaged.exitCode == 1, "\(damaged.errors)")
      #expect(damaged.errors.contains("field-keys.json is missing"), "\(damaged.errors)")
      #expect(!FileManager.default.fileExists(atPath: new))
    }
  }

  @Test("The doctor finds a data folder that cannot be written")
  func unwritable() async throws {
    try await withTemporaryFolder { folder in
      try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder.path)
      let data = folder.appendingPathComponent("data")
      try await makeData(in: data.path)
      if geteuid() == 0 {
        let names = try FileManager.default.subpathsOfDirectory(atPath: data.path)
        for path in [data.path] + names.map({ "\(data.path)/\($0)" }) {
          try #require(chown(path, 65534, 65534) == 0)
        }
      }
      func doctor(_ mode: Int) async throws -> CommandProcess.Outcome {
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: data.path)
        return try await runWithoutRights(["doctor", "--data", data.path], on: folder)
      }
      let closed = try await doctor(0o500)
      #expect(closed.exitCode == 2, "\(closed.output)")
      #expect(closed.output.contains("cannot be written: Permission denied"), "\(closed.output)")
      let open = try await doctor(0o700)
      #expect(open.exitCode == 0, "\(open.output)")
    }
  }

  @Test(
    "A wrong verb is reported as one, with the right one and the list",
    arguments: [
      (["user", "list"], "'watershed users'"), (["users", "lst"], "'watershed users list'"),
      (["users", "remove", "ada"], "'watershed users delete'"),
      (["users", "create", "ada"], "'watershed users add'"),
      (["cktool", "get-record", "--team-id", "T"], "query-records"),
      (["frobnicate"], "serve, exec"),
    ]
  )
  func verbs(arguments: [String], hint: String) async throws {
    let run = try await CommandProcess(arguments).finish()
    #expect(run.exitCode == 64)
    #expect(run.errors.contains("is no command of '"), "\(run.errors)")
    #expect(run.errors.contains(hint), "\(run.errors)")
  }

  @Test("The help of an unknown command is an error, which names the commands")
  func unknownHelp() async throws {
    let unknown = try await CommandProcess.run("help", "bogus")
    #expect(unknown.exitCode == 64)
    #expect(unknown.errors.contains("serve, exec"), "\(unknown.errors)")
    let known = try await CommandProcess.run("help", "records", "query")
    #expect(known.exitCode == 0)
    #expect(known.output.contains("--record-type"), "\(known.output)")
  }

  @Test("An argument that begins with a hyphen is not taken for the request of help")
  func hyphens() async throws {
    for arguments in [["users", "delete", "-hello", "--yes"], ["users", "add", "-dash"]] {
      let run = try await CommandProcess(arguments).finish()
      #expect(run.exitCode == 64, "\(run.output)")
      #expect(run.errors.contains("is no option. A value"), "\(run.errors)")
    }
    #expect(try await CommandProcess.run("users", "delete", "-h").exitCode == 0)
    let value = try await CommandProcess.run("records", "get", "--record-name", "-x")
    #expect(value.exitCode == 64)
    #expect(value.errors.contains("--OPTION=VALUE"), "\(value.errors)")
  }

  @Test("A wrong argument that a command finds itself is reported with the command's own usage")
  func ownUsage() async throws {
    let run = try await CommandProcess.run("adopt", "/none-of-this-name")
    #expect(run.exitCode == 64)
    #expect(run.errors.contains("Usage: watershed adopt"), "\(run.errors)")
    #expect(run.errors.contains("'watershed adopt --help'"), "\(run.errors)")
  }

  @Test("A container's name is checked where a command makes it without asking")
  func containerNames() async throws {
    let exec = try await CommandProcess.run("exec", "--container-id", "bad id", "--", "true")
    #expect(exec.exitCode == 64)
    #expect(exec.errors.contains("letters, digits, hyphens"), "\(exec.errors)")
    try await withTemporaryFolder { folder in
      let file = folder.appendingPathComponent("c.json")
      try Data(#"{"container":"bad id"}"#.utf8).write(to: file)
      let check = try await CommandProcess.run("config", "check", "--config", file.path)
      #expect(check.output.contains("bad id is no identifier"), "\(check.output)")
    }
  }

  @Test("Signing in and printing a token create no container with a misspelt name")
  func misspeltContainer() async throws {
    try await withServer { server in
      let signedIn = try await server.run(
        "users",
        "sign-in",
        "demo",
        "--container-id",
        "iCloud.typo"
      )
      #expect(signedIn.exitCode == 1)
      #expect(signedIn.errors.contains("NO_CONTAINER"), "\(signedIn.errors)")
      let own = try await server.run("tokens", "own", "--container-id", "iCloud.typo")
      #expect(own.errors.contains("NO_CONTAINER"), "\(own.errors)")
      let invalid = try await server.run("containers", "create", "bad name")
      #expect(invalid.exitCode == 1)
      #expect(invalid.errors.contains("letters, digits"), "\(invalid.errors)")
      let added = try await server.run("tokens", "add", "--container-id", "iCloud.b")
      #expect(added.errors.contains("Created the container iCloud.b."), "\(added.errors)")
      let again = try await server.run("tokens", "add", "--container-id", "iCloud.b")
      #expect(again.errors.isEmpty)
      let names = try await server.run("containers", "list", "--output", "text").output
      #expect(names == "CONTAINER\niCloud.a\niCloud.b\n")
    }
  }

  @Test("A change of nothing, an unknown kind and a malformed address are wrong usage")
  func usage() async throws {
    try await withServer { server in
      #expect(try await server.run("users", "update", "demo").exitCode == 64)
      let kind = try await server.run("audit", "--kind", "sign-inn.failure")
      #expect(kind.exitCode == 64)
      #expect(kind.errors.contains("sign-in, "), "\(kind.errors)")
      #expect(try await server.run("audit", "--kind", "sign-in.failure").exitCode == 0)
      #expect(try await server.run("audit", "--address", "nope").exitCode == 64)
      #expect(try await server.run("audit", "--address", "2001:db8::1").exitCode == 0)
      let filter = try await server.run(
        "records",
        "query",
        "--container-id",
        "iCloud.a",
        "--user",
        "demo",
        "--record-type",
        "Note",
        "--filters",
        "n BEGINSWITH x"
      )
      #expect(filter.exitCode == 64)
      #expect(filter.errors.contains("BEGINS_WITH"), "\(filter.errors)")
    }
  }

  @Test("Each failure of a sign-in or a token names the step that helps")
  func tokens() async throws {
    try await withServer { server in
      let home = ["HOME": server.folder.path, "XDG_CONFIG_HOME": ""]
      let none = try await CommandProcess(
        ["users", "list", "--server", server.url],
        environment: home
      ).finish()
      #expect(none.exitCode == 77)
      #expect(none.errors.contains("NO_TOKEN"), "\(none.errors)")
      let wrong = try await CommandProcess(
        ["login", "demo", "--password-stdin", "--server", server.url],
        environment: home,
        input: "wrong\n"
      ).finish()
      #expect(wrong.exitCode == 77)
      #expect(wrong.errors.contains("check the name and the password"), "\(wrong.errors)")
      let secret = "correct horse battery"
      let added = try await CommandProcess(
        ["users", "add", "ada", "--administrator", "--password-stdin", "--data", server.data],
        input: secret + "\n"
      ).finish()
      try #require(added.exitCode == 0, "\(added.errors)")
      let login = try await CommandProcess(
        ["login", "ada", "--password-stdin", "--server", server.url],
        environment: home,
        input: secret + "\n"
      ).finish()
      try #require(login.exitCode == 0, "\(login.errors)")
      let copy = server.folder.appendingPathComponent("copy").path
      let backup = try await CommandProcess(
        ["backup", "create", copy, "--server", server.url],
        environment: home
      ).finish()
      #expect(backup.exitCode == 77)
      #expect(backup.errors.contains("ACCESS_DENIED"), "\(backup.errors)")
      #expect(backup.errors.contains("admin-token"), "\(backup.errors)")
    }
  }

  @Test("A text for an encrypted field is refused with the member that encrypts it")
  func encryptedField() async throws {
    try await withServer { server in
      let place = [
        "--container-id", "iCloud.a", "--user", "demo", "--record-type", "Note", "--data",
        server.data, "--fields-json",
      ]
      func create(_ json: String) async throws -> CommandProcess.Outcome {
        try await CommandProcess(["records", "create"] + place + [json]).finish()
      }
      let first = #"{"s":{"type":"stringType","value":"x","isEncrypted":true}}"#
      #expect(try await create(first).exitCode == 0)
      let plain = try await create(#"{"s":{"type":"stringType","value":"x"}}"#)
      #expect(plain.exitCode == 1)
      #expect(plain.errors.contains(#"add "isEncrypted": true"#), "\(plain.errors)")
    }
  }

  @Test("The doctor finds a port in use, a folder in use and a damaged key file")
  func doctor() async throws {
    try await withServer { server in
      let port = try #require(URL(string: server.url)?.port)
      let other = server.folder.appendingPathComponent("other")
      try await makeData(in: other.path)
      let file = server.folder.appendingPathComponent("c.json")
      try Data(#"{"data":"\#(other.path)","port":\#(port)}"#.utf8).write(to: file)
      let taken = try await CommandProcess.run("doctor", "--config", file.path)
      #expect(taken.exitCode == 2)
      #expect(taken.output.contains("cannot listen on 127.0.0.1:\(port)"), "\(taken.output)")
      try Data("not JSON".utf8).write(to: other.appendingPathComponent("field-keys.json"))
      let damaged = try await CommandProcess.run("doctor", "--data", other.path)
      #expect(damaged.output.contains("field-keys.json is damaged"), "\(damaged.output)")
      // The lock without the note, as while a server starts.
      let note = URL(fileURLWithPath: server.data).appendingPathComponent("server.json")
      try FileManager.default.removeItem(at: note)
      let held = try await server.run("doctor")
      #expect(held.exitCode == 2)
      #expect(held.output.contains("has the data folder locked"), "\(held.output)")
    }
  }
}
