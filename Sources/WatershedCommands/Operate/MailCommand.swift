import ArgumentParser
import CloudKitServer
import CloudKitServerHTTP
import Foundation

/// `watershed mail`: tests whether the server can send mails.
struct MailCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "mail",
    abstract: "Test the mail server of a configuration.",
    subcommands: [Test.self]
  )

  struct Test: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Send a test mail as the server would, and print the mail server's reply.",
      discussion: """
        It is sent from this machine, by the key smtp of the configuration; the server need not run.
        """
    )

    @OptionGroup var output: OutputOptions
    @Option(help: "The server's configuration file; WATERSHED_CONFIG names it too.")
    var config: String?
    @Argument(help: "The address that the mail goes to.") var address: String

    func validate() throws {
      if let objection = EmailAddress.objection(to: address) { throw ValidationError(objection) }
    }

    private struct Sent: Encodable {
      var address: String
      var host: String
    }

    func run() async throws {
      try await perform("no mail was sent") {
        let settings: ServerConfiguration
        do {
          settings = try ConfigurationSource(file: config).load()
        } catch {
          throw failure("BAD_CONFIGURATION", "\(error)", next: "watershed config check")
        }
        guard let smtp = settings.smtp else {
          throw failure(
            "BAD_CONFIGURATION",
            "the configuration names no mail server",
            next: "add the key smtp with host and from"
          )
        }
        let problems = smtp.problems(isExposed: false, publicURL: settings.publicURL)
        guard problems.isEmpty else {
          throw failure(
            "BAD_CONFIGURATION",
            problems.joined(separator: "; "),
            next: "watershed config check"
          )
        }
        let mail = MailMessage(
          to: address,
          subject: "A mail of your Watershed server",
          text: "The server's mails are sent as this one was.\n",
          id: UUID().uuidString.lowercased(),
          date: Date()
        )
        do {
          try await SMTPMailer(smtp.settings(publicURL: settings.publicURL)).send(mail)
        } catch let error as MailFailure {
          throw failure("MAIL_NOT_SENT", error.reason, next: "watershed explain MAIL_NOT_SENT")
        }
        try output.write(
          Sent(address: address, host: smtp.host),
          text: "\(smtp.host) accepted a mail for \(address)."
        )
      }
    }

    private func failure(_ code: String, _ why: String, next: String) -> CommandFailure {
      CommandFailure(code, what: "no mail was sent", why: why, next: next)
    }
  }
}
