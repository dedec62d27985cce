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
    static let configuration = CommandConfiguration(abstract: "Print how the server does.")

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
      try await perform("the status cannot be shown") {
        let status: CloudKitService.ServerStatus = try await server.connect {
          try await $0.call("server/status", NoReply())
        }
        try output.write(
          status,
          text: """
            address      \(status.baseURL)
            people       \(status.users)
            containers   \(status.containers.joined(separator: ", "))
            incarnation  \(status.incarnation)
            """
        )
      }
    }
  }

  struct NewIncarnation: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "new-incarnation",
      abstract: "Tell clients that the data was replaced by an older copy.",
      discussion: """
        After a database was put back by its own means: clients compare all they have with the server, \
        and send again what it lost. `backup restore` does it by itself.
        """
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions
    @OptionGroup var consent: ConsentOptions

    func run() async throws {
      try await perform("no incarnation was begun") {
        guard try consent.isGiven(to: "have every client compare all its data", output) else {
          return
        }
        let reply: [String: String] = try await server.connect {
          try await $0.call("server/new-incarnation", NoReply())
        }
        try output.write(reply, text: reply["incarnation"] ?? "")
      }
    }
  }

  struct RotateKey: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "rotate-key",
      abstract: "Make new keys for encrypted fields and for signing.",
      discussion: """
        The former keys still open what they sealed; addresses that the former signing key made are \
        good for a day. With --leaked, after the key file or a whole backup was copied, they are good \
        for nothing at once; change tokens stay good, so that no client begins again. Sign-ins do not \
        depend on these keys: end them with `users sign-out`. Take a backup afterwards: older ones \
        lack the keys.
        """
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions
    @OptionGroup var consent: ConsentOptions
    @Flag(help: "The former keys have leaked: nothing that they signed opens anything.")
    var leaked = false

    func run() async throws {
      try await perform("no key was made") {
        if leaked {
          let deed = "end every address and link that the server gave out"
          guard try consent.isGiven(to: deed, output) else { return }
        }
        let reply: [String: String] = try await server.connect {
          try await $0.call("server/rotate-key", ["leaked": leaked])
        }
        try output.write(reply, text: reply["keyID"] ?? "")
      }
    }
  }

  struct RenewToken: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "renew-token",
      abstract: "Make a new operator's token in the data folder; the former one opens nothing.",
      discussion: """
        Commands of this machine read the new one from the file `admin-token`. Sessions of \
        administrators are not touched: `users sign-out` ends those.
        """
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
      try await perform("no token was made") {
        let _: NoReply = try await server.connect {
          try await $0.call("server/renew-token", NoReply())
        }
        try output.done("The operator's token is new.", [String: String]())
      }
    }
  }
}
