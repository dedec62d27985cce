import Foundation
import Testing

/// The README's section on hosting, from the first start to a restored backup.
@Suite("Hosting a server")
struct HostingTests {
  private func run(_ arguments: String...) async throws -> CommandProcess.Outcome {
    try await CommandProcess(arguments).finish()
  }

  /// A certificate for a name that this machine does not have; nil without openssl.
  private func certificate(in folder: URL) async throws -> (chain: String, key: String)? {
    let program = URL(fileURLWithPath: "/usr/bin/openssl")
    guard FileManager.default.isExecutableFile(atPath: program.path) else { return nil }
    let chain = folder.appendingPathComponent("chain.pem").path
    let key = folder.appendingPathComponent("key.pem").path
    let made = try await CommandProcess(
      [
        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
        "-keyout", key, "-out", chain, "-days", "2", "-subj", "/CN=cloud.example.org", "-addext",
        "subjectAltName=DNS:cloud.example.org",
      ],
      program: program
    ).finish()
    return made.exitCode == 0 ? (chain, key) : nil
  }

  private func mode(_ path: String) throws -> Int? {
    try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
  }

  @Test("The documented commands host a server from its first start to a restored backup")
  func walk() async throws {
    try await withTemporaryFolder { folder in
      let data = folder.appendingPathComponent("data").path
      var arguments = [
        "serve", "--environment", "production", "--public-url", "https://cloud.example.org",
        "--container", "iCloud.org.example.notes", "--port", "0", "--data", data, "--json",
      ]
      if let tls = try await certificate(in: folder) {
        arguments += ["--tls-certificate", tls.chain, "--tls-key", tls.key]
      } else {
        print("openssl is not installed: the server is walked through without TLS")
      }
      let server = try CommandProcess(arguments)
      let banner = try #require(try await server.nextLine())
      #expect(banner.contains(#""environment":"production""#))
      // There is no password yet: the banner has an invitation, and no account.
      #expect(banner.contains("https://cloud.example.org/sign-up?invitation="))
      #expect(!banner.contains("password"))
      #expect(try mode(data) == 0o700)

      let before = try await run("doctor", "--data", data)
      #expect(before.exitCode == 0, "\(before.output)")
      #expect(before.output.contains("no account is an administrator"))
      let added = try await run("users", "add", "root", "--administrator", "--data", data)
      #expect(added.exitCode == 0, "\(added.errors)")
      let after = try await run("doctor", "--data", data)
      #expect(!after.output.contains("no account is an administrator"))
      let invited = try await run("users", "invite", "--data", data, "--output", "text")
      #expect(invited.output.hasPrefix("https://cloud.example.org/sign-up?invitation="))

      let copy = folder.appendingPathComponent("copy").path
      #expect(try await run("backup", "create", copy, "--data", data).exitCode == 0)
      #expect(try mode(copy) == 0o700)
      #expect(try await run("backup", "verify", copy).exitCode == 0)
      server.terminate()
      #expect(try await server.finish().exitCode == 0)

      let restored = folder.appendingPathComponent("restored").path
      let put = try await run("backup", "restore", copy, "--data", restored, "--yes")
      #expect(put.exitCode == 0, "\(put.errors)")
      #expect(try mode(restored) == 0o700)
      let people = try await run("users", "list", "--data", restored, "--output", "text")
      #expect(people.output.contains("root"))
    }
  }

  @Test("The doctor reports a data folder that others may read")
  func openFolder() async throws {
    try await withTemporaryFolder { folder in
      let data = folder.appendingPathComponent("data").path
      try FileManager.default.createDirectory(
        atPath: data,
        withIntermediateDirectories: true,
        attributes: [.posixPermissions: 0o700]
      )
      try await makeData(in: data)
      #expect(try await run("doctor", "--data", data).exitCode == 0)
      try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: data)
      let found = try await run("doctor", "--data", data)
      #expect(found.exitCode == 2)
      #expect(found.output.contains("chmod 700"))
    }
  }
}
