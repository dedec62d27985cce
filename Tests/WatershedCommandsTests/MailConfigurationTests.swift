import CloudKitServerHTTP
import Foundation
import Testing

@testable import WatershedCommands

/// The key `smtp`: its defaults, invalid values, and a test mail.
@Suite("The mail server of a configuration")
struct MailConfigurationTests {
  private func configuration(_ environment: [String: String]) throws -> ServerConfiguration {
    let all = ["SMTP_HOST": "mail.example.org", "SMTP_FROM": "w@example.org"]
      .merging(environment) { $1 }
    return try ConfigurationSource(
      file: nil,
      environment: Dictionary(uniqueKeysWithValues: all.map { ("WATERSHED_\($0.key)", $0.value) })
    ).load()
  }

  private func problems(_ environment: [String: String]) throws -> [String] {
    try configuration(environment).problems
  }

  @Test("Host and sender are enough: STARTTLS on port 587, with the name of the public URL")
  func defaults() throws {
    let section = try #require(try configuration([:]).smtp)
    let settings = section.settings(publicURL: "https://cloud.example.org/")
    #expect(settings.port == 587)
    #expect(settings.security == .starttls)
    #expect(settings.name == "cloud.example.org")
    #expect(settings.clientName == "cloud.example.org")
    #expect(try problems([:]).isEmpty)
    #expect(try configuration(["SMTP_SECURITY": "tls"]).smtp?.settings(publicURL: nil).port == 465)
    #expect(try configuration(["SMTP_SECURITY": "none"]).smtp?.settings(publicURL: nil).port == 25)
  }

  @Test(
    "A setting that prevents mails, or reveals a password, is a problem of its key"
  )
  func refusals() throws {
    let cases: [(environment: [String: String], words: String)] = [
      (["SMTP_HOST": "mail example"], "smtp.host"),
      (["SMTP_PORT": "0"], "smtp.port"),
      (["SMTP_PORT": "65536"], "smtp.port"),
      (["SMTP_FROM": "nobody"], "smtp.from"),
      (["SMTP_USER": "w"], "smtp.user"),
      (["SMTP_PASSWORD": "x"], "smtp.user"),
      (["SMTP_USER": "w", "SMTP_PASSWORD_FILE": "/nowhere"], "smtp.passwordFile"),
      (["SMTP_CERTIFICATE_AUTHORITY": "/nowhere"], "smtp.certificateAuthority"),
      (["SMTP_CERTIFICATE_AUTHORITY": "/dev/null"], "smtp.certificateAuthority"),
      (["SMTP_USER": "w", "SMTP_PASSWORD": "x", "SMTP_SECURITY": "none"], "smtp.security"),
      (["HOST": "0.0.0.0", "SMTP_PORT": "25"], "publicURL"),
    ]
    for (environment, words) in cases {
      let found = try problems(environment)
      #expect(found.count == 1, "\(environment): \(found)")
      #expect(found.first?.contains(words) == true, "\(environment): \(found)")
    }
    let local = ["SMTP_HOST": "127.0.0.1", "SMTP_SECURITY": "none"]
    #expect(try problems(local.merging(["SMTP_USER": "w", "SMTP_PASSWORD": "x"]) { $1 }).isEmpty)
    #expect(try configuration(local).warnings.isEmpty)
    #expect(try configuration(["SMTP_SECURITY": "none"]).warnings.count == 1)
    #expect(throws: ConfigurationSource.Unreadable.self) {
      try configuration(["SMTP_SECURITY": "perhaps"])
    }
  }

  @Test("The password is not shown with the configuration")
  func redaction() throws {
    let shown = try configuration(["SMTP_USER": "w", "SMTP_PASSWORD": "s3cret"]).redacted
    #expect(shown.smtp?.password == "…")
  }

  @Test("A test mail reports why it was not sent")
  func byHand() async throws {
    try await withTemporaryFolder { folder in
      let file = folder.appendingPathComponent("c.json")
      try Data("{}".utf8).write(to: file)
      let none = try await CommandProcess.run(
        "mail",
        "test",
        "ada@example.org",
        "--config",
        file.path
      )
      #expect(none.exitCode == 1)
      #expect(none.errors.contains("BAD_CONFIGURATION"))
      // Nothing listens on port 1 of this machine, which needs privileges.
      try Data(
        #"{"smtp":{"host":"127.0.0.1","port":1,"security":"none","from":"w@example.org"}}"#.utf8
      ).write(to: file)
      let refused = try await CommandProcess.run(
        "mail",
        "test",
        "ada@example.org",
        "--config",
        file.path
      )
      #expect(refused.exitCode == 1)
      #expect(refused.errors.contains("MAIL_NOT_SENT"))
      #expect(refused.errors.contains("127.0.0.1:1"))
      let address = try await CommandProcess.run("mail", "test", "ada", "--config", file.path)
      #expect(address.exitCode == 64)
    }
  }
}
