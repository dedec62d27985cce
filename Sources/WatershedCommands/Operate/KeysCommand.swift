import ArgumentParser
import CloudKitServer
import CloudKitWebServices
import Foundation

/// `watershed keys`: server-to-server keys.
struct KeysCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "keys",
    abstract: "Server-to-server keys, which sign requests to a public database: list, add, remove.",
    subcommands: [List.self, Add.self, Remove.self]
  )

  typealias Key = ServerKeyDescription

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "List the keys.")

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions

    private struct Reply: Decodable { var keys: [Key] }

    func run() async throws {
      try await perform("the keys cannot be listed") {
        let reply: Reply = try await server.connect { try await $0.call(.keys(.list), NoReply()) }
        try output.write(
          "keys",
          reply.keys,
          columns: reply.keys.map { key in
            [key.keyID, key.name, key.container, key.environment.rawValue, key.userRecordName]
          },
          titles: ["key ID", "name", "container", "environment", "user"]
        )
      }
    }
  }

  struct Add: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Add a public key and print its ID.",
      discussion: """
        openssl ecparam -name prime256v1 -genkey -noout -out eckey.pem
        openssl ec -in eckey.pem -pubout | watershed keys add - --container-id iCloud.org.example.app
        """
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions
    @Argument(help: "A file with the public key in PEM; - reads the standard input.")
    var file: String
    @Option(help: "The container.") var containerId: String
    @Option(help: "The environment of the container: development or production.")
    var environment = ContainerEnvironment.development
    @Option(help: "A name for the key.") var name = ""
    @Option(help: "The key's ID; without it one is generated.") var keyId: String?

    private struct Body: Encodable {
      var publicKey: String
      var name: String
      var container: String
      var environment: ContainerEnvironment
      var keyID: String?
    }

    func run() async throws {
      try await perform("no key was added") {
        let pem = try InputFile.text(file)
        // It must not leave the machine, nor be written to a server's log.
        guard !pem.contains("PRIVATE KEY-----") else {
          throw CommandFailure(
            "PRIVATE_KEY",
            what: "no key was added",
            why:
              "\(file) holds a private key, which only the signing client may have; it was not sent",
            next:
              "openssl ec -in \(file) -pubout | watershed keys add - --container-id \(containerId)",
            exit: ExitCodes.usage
          )
        }
        let body = Body(
          publicKey: pem,
          name: name,
          container: containerId,
          environment: environment,
          keyID: keyId
        )
        let key: Key = try await server.connect { try await $0.call(.keys(.add), body) }
        try output.write(key, text: key.keyID)
      }
    }
  }

  struct Remove: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Remove a key; requests that it signs are refused."
    )

    @OptionGroup var server: ServerOptions
    @OptionGroup var output: OutputOptions
    @OptionGroup var consent: ConsentOptions
    @Argument(help: "The key's ID.") var keyId: String

    func run() async throws {
      try await perform("the key was not removed") {
        guard try consent.isGiven(to: "revoke the server-to-server key \(keyId)", output) else {
          return
        }
        let _: NoReply = try await server.connect {
          try await $0.call(.keys(.remove), ["keyID": keyId])
        }
        try output.done("Removed.", ["keyID": keyId])
      }
    }
  }
}
