import ArgumentParser
import CloudKitServer
import Foundation

/// `watershed server`: commands for the whole server.
struct ServerCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "server",
    abstract: "The server as a whole: its status, a new incarnation, new keys, a new token.",
    subcommands: [Status.self, NewIncarnation.self, RotateKey.self, RenewToken.self]
  )

  struct Status: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Print whether the server runs, its address, people and containers.",
      discussion: """
        Of a stopped server the data is read: exit code 0 does not mean that it runs. For a check that fails \
        then, use `doctor --only-server`.
        """
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions

    /// The server's own status, and whether it was a running server that sent it.
    private struct Shown: Encodable {
      var status: CloudKitService.ServerStatus
      var isRunning: Bool
      var process: Int32?

      private enum CodingKeys: String, CodingKey { case isRunning, process }

      func encode(to encoder: any Encoder) throws {
        try status.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(isRunning, forKey: .isRunning)
        try container.encodeIfPresent(process, forKey: .process)
      }

      var text: String {
        let process = process.map { ", process \($0)" } ?? ""
        return """
          runs         \(isRunning ? "yes\(process)" : "no")
          address      \(status.baseURL)
          people       \(status.users)
          containers   \(status.containers.joined(separator: ", "))
          incarnation  \(status.incarnation)
          """
      }
    }

    func run() async throws {
      try await perform("the status cannot be shown") {
        let shown = try await server.connect { connection in
          Shown(
            status: try await connection.call(.server(.status), NoReply()),
            isRunning: connection.isRunning,
            process: connection.process
          )
        }
        try output.write(shown, text: shown.text)
      }
    }
  }

  struct NewIncarnation: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "new-incarnation",
      abstract: "Invalidate all change tokens, after the data was replaced with an older copy.",
      discussion: """
        For a database that was restored with its own tools: clients compare all they have with the server, \
        and send again what it lost. `backup restore` does so itself.
        """
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions
    @OptionGroup var consent: ConsentOptions

    func run() async throws {
      try await perform("no incarnation was started") {
        guard
          try consent.isGiven(to: "make every client compare all its data with the server", output)
        else {
          return
        }
        let reply: [String: String] = try await server.connect {
          try await $0.call(.server(.newIncarnation), NoReply())
        }
        try output.write(reply, text: reply["incarnation"] ?? "")
      }
    }
  }

  struct RotateKey: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "rotate-key",
      abstract: "Generate new keys for encrypted fields and for signing.",
      discussion: """
        The former keys still decrypt what they encrypted; URLs that the former signing key signed are \
        valid for a day. With --leaked, after the key file or a whole backup was copied, these URLs are \
        invalid at once; change tokens stay valid, so that no client fetches all again. Sign-ins do not \
        depend on these keys: end them with `users sign-out`. Take a backup afterwards: older ones \
        lack the keys.
        """
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions
    @OptionGroup var consent: ConsentOptions
    @Flag(help: "The former keys have leaked: revoke everything that they signed.")
    var leaked = false

    func run() async throws {
      try await perform("no key was generated") {
        if leaked {
          let deed = "revoke every URL and link that the server issued"
          guard try consent.isGiven(to: deed, output) else { return }
        }
        let reply: [String: String] = try await server.connect {
          try await $0.call(.server(.rotateKey), ["leaked": leaked])
        }
        try output.write(reply, text: reply["keyID"] ?? "")
      }
    }
  }

  struct RenewToken: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "renew-token",
      abstract: "Create a new operator's token in the data folder, and revoke the former one.",
      discussion: """
        Commands of this machine read the new one from the file `admin-token`. Sessions of \
        administrators are not touched: `users sign-out` ends those.
        """
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
      try await perform("no token was created") {
        let _: NoReply = try await server.connect {
          try await $0.call(.server(.renewToken), NoReply())
        }
        try output.done("The operator's token is new.", [String: String]())
      }
    }
  }
}
