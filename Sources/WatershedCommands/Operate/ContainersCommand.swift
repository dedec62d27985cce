import ArgumentParser
import CloudKitServer
import Foundation

/// `watershed containers`: the containers of a server.
struct ContainersCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "containers",
    abstract: "The containers of a server: list, create, delete.",
    subcommands: [List.self, Create.self, Delete.self]
  )

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "List the containers.")

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions

    private struct Container: Encodable {
      var container: String
    }

    func run() async throws {
      try await perform("the containers cannot be listed") {
        let names = try await server.connect { try await $0.containers() }
        try output.write(
          "containers",
          names.map { Container(container: $0) },
          columns: names.map { [$0] },
          titles: ["container"]
        )
      }
    }
  }

  struct Create: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Create a container.",
      discussion: "The first API token, key, schema or record of a container creates it too."
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions
    @Argument(help: "The identifier, such as iCloud.org.example.app.") var container: String

    func run() async throws {
      try await perform("no container was created") {
        let _: NoReply = try await server.connect {
          try await $0.call(.containers(.create), ["container": container])
        }
        try output.done("Created \(container).", ["container": container])
      }
    }
  }
}

extension ContainersCommand {
  struct Delete: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Delete a container with all its data, in both environments.",
      discussion: """
        Records, files, schemas, subscriptions, API tokens and keys of the container are erased, and everyone is \
        signed out of it; accounts stay. It cannot be undone, except from a backup. A server that stops in \
        between continues when it starts again, and so does this command. The container of the configuration \
        is not deleted. An app that signs in with an API token for all containers creates the container again, \
        empty.
        """
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions
    @OptionGroup var consent: ConsentOptions
    @Argument(help: "The identifier, such as iCloud.org.example.app.") var container: String

    private struct Body: Encodable {
      var container: String
      var isDryRun: Bool
      var continues: Bool
    }

    private struct Deleted: Encodable {
      var container: String
      var deleted: ContainerContents
    }

    func run() async throws {
      try await perform("the container was not deleted") {
        try await server.connect { connection in
          let trial: ContainerDeletion = try await connection.call(
            .containers(.delete),
            Body(container: container, isDryRun: true, continues: false)
          )
          let contents = trial.contents ?? ContainerContents()
          let deed = "delete \(container): \(contents.summary)"
          guard try consent.isGiven(to: deed, output) else { return }
          var (isBegun, isComplete) = (false, false)
          while !isComplete {
            let reply: ContainerDeletion = try await connection.call(
              .containers(.delete),
              Body(container: container, isDryRun: false, continues: isBegun)
            )
            (isBegun, isComplete) = (true, reply.isComplete)
          }
          try output.done(
            "Deleted \(container): \(contents.summary).",
            Deleted(container: container, deleted: contents)
          )
        }
      }
    }
  }
}

extension AdminConnection {
  private struct Containers: Decodable { var containers: [String] }

  func containers() async throws -> [String] {
    let reply: Containers = try await call(.containers(.list), NoReply())
    return reply.containers
  }

  /// Throws if a container does not exist: a request for it would show nothing, and create it.
  func requireContainer(_ name: String) async throws {
    guard try await !containers().contains(name) else { return }
    throw CommandFailure(
      "NO_CONTAINER",
      what: "there is no container \(name)",
      why: "the server has no container of this name",
      next: "watershed containers list, or watershed containers create \(name)"
    )
  }
}
