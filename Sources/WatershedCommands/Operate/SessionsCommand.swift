import ArgumentParser
import CloudKitServer
import Foundation

/// `watershed sessions`: the sign-ins of an account that belong to no device.
struct SessionsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sessions",
    abstract: "The sign-ins of a user on pages and without a device: list, end.",
    discussion: """
      `users devices` lists the devices, and `users revoke-device` signs one out. `users sign-out` ends \
      everything at once.
      """,
    subcommands: [List.self, End.self]
  )

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "List the open sign-ins of a user.")

    @OptionGroup var person: UsersCommand.PersonOptions

    private struct Reply: Decodable { var sessions: [SignInDescription] }

    func run() async throws {
      try await perform("the sign-ins of \(person.name) cannot be listed") {
        let reply: Reply = try await person.server.connect {
          try await $0.call(.users(.sessions), ["userName": person.name])
        }
        try person.output.write(
          "sessions",
          reply.sessions,
          columns: reply.sessions.map { session in
            let end = Date(timeIntervalSince1970: Double(session.expires) / 1000)
            return [
              session.id, session.container, session.isKept ? "yes" : "no", end.formatted(.iso8601),
            ]
          },
          titles: ["id", "container", "kept", "expires"]
        )
      }
    }
  }

  struct End: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "End one sign-in of a user; its token and the URLs that it was given are refused."
    )

    @OptionGroup var person: UsersCommand.PersonOptions
    @Argument(help: "The sign-in's ID, as `sessions list` prints it.") var id: String

    func run() async throws {
      try await perform("the sign-in was not ended") {
        let _: NoReply = try await person.server.connect {
          try await $0.call(.users(.endSession), ["userName": person.name, "id": id])
        }
        try person.output.done("The sign-in has ended.", ["id": id, "userName": person.name])
      }
    }
  }
}
