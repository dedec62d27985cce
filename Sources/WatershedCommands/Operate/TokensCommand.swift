import ArgumentParser
import CloudKitServer
import CloudKitWebServices
import Foundation

/// `watershed tokens`: the API tokens of apps.
struct TokensCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "tokens",
    abstract: "API tokens, which name an app to the server: list, add, remove; and your own: save.",
    subcommands: [List.self, Own.self, Add.self, Remove.self, Save.self, Forget.self]
  )

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "List the API tokens, by the first characters of each."
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions

    private struct Reply: Decodable { var tokens: [CloudKitService.APITokenDescription] }

    func run() async throws {
      try await perform("the tokens cannot be listed") {
        let reply: Reply = try await server.connect {
          try await $0.call(.tokens(.list), NoReply())
        }
        try output.write(
          "tokens",
          reply.tokens,
          columns: reply.tokens.map { token in
            [
              token.prefix, token.container ?? "any", token.environment.rawValue,
              token.allowedOrigins.joined(separator: " "), token.redirectURL ?? "",
            ]
          },
          titles: ["prefix", "container", "environment", "origins", "redirect"]
        )
      }
    }
  }

  struct Own: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Print the server's own API token for a container, the one of its banner.",
      discussion: """
        Tokens of apps are kept as digests and were shown when they were made. The server's own is kept \
        sealed, with a key that is not in the database.
        """
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions
    @Option(help: "The container's identifier.") var containerId: String
    @Option(help: "The environment of the container: development or production.")
    var environment = ContainerEnvironment.development

    private struct Body: Encodable {
      var container: String
      var environment: ContainerEnvironment
    }

    func run() async throws {
      try await perform("the token cannot be shown") {
        let body = Body(container: containerId, environment: environment)
        let reply: [String: String] = try await server.connect {
          // The token would create it.
          try await $0.requireContainer(containerId)
          return try await $0.call(.tokens(.own), body)
        }
        try output.write(reply, text: reply["token"] ?? "")
      }
    }
  }

  struct Add: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Add an API token and print it once: the server keeps only its digest.",
      discussion: """
        Without origins it serves native apps, pages of the server itself and, in development, pages \
        of this machine.
        """
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions
    @Option(
      help: "The container; without it the token is valid for all, which suits development only."
    )
    var containerId: String?
    @Option(help: "The environment of the container: development or production.")
    var environment = ContainerEnvironment.development
    @Option(
      name: .customLong("origin"),
      help: "A web origin that may use it, such as https://app.example.org; repeat for more."
    )
    var origins: [String] = []
    @Option(help: "Where the sign-in page sends the user token, instead of to the page that asked.")
    var redirectURL: String?

    private struct Body: Encodable {
      var container: String?
      var environment: ContainerEnvironment
      var allowedOrigins: [String]
      var redirectURL: String?
    }

    func run() async throws {
      try await perform("no token was added") {
        let body = Body(
          container: containerId,
          environment: environment,
          allowedOrigins: origins,
          redirectURL: redirectURL
        )
        let (reply, isNew) = try await server.connect { connection in
          var isNew = false
          if let containerId { isNew = try await !connection.containers().contains(containerId) }
          let reply: [String: String] = try await connection.call(.tokens(.create), body)
          return (reply, isNew)
        }
        if isNew, let containerId { output.remark("Created the container \(containerId).") }
        try output.write(reply, text: reply["token"] ?? "")
      }
    }
  }

  struct Remove: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Remove an API token; apps that use it are refused."
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions
    @OptionGroup var consent: ConsentOptions
    @Argument(help: "The API token, or its first characters as `tokens list` shows them.")
    var apiToken: String

    func run() async throws {
      try await perform("the token was not removed") {
        guard try consent.isGiven(to: "revoke the API token of every app that uses it", output)
        else { return }
        let _: NoReply = try await server.connect {
          try await $0.call(.tokens(.remove), ["token": apiToken])
        }
        try output.done("Removed.", ["token": apiToken])
      }
    }
  }
}
