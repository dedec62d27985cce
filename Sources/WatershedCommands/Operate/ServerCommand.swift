import ArgumentParser
import CloudKitServer
import Foundation

/// `watershed server`: the server as a whole.
struct ServerCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "server",
    abstract:
      "The server as a whole: its status, a new incarnation, a new key for encrypted fields.",
    subcommands: [Status.self, NewIncarnation.self, RotateKey.self]
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
      abstract: "Make a new key for encrypted fields; the old ones still open what they sealed.",
      discussion: "Take a backup afterwards: older ones lack the key."
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
      try await perform("no key was made") {
        let reply: [String: String] = try await server.connect {
          try await $0.call("server/rotate-key", NoReply())
        }
        try output.write(reply, text: reply["keyID"] ?? "")
      }
    }
  }
}
