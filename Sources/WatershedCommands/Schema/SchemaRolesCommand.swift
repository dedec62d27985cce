import ArgumentParser
import CloudKitWebServices
import Foundation

/// `watershed schema set-roles`.
struct SchemaRolesCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "set-roles",
    abstract: "Set the custom roles of the schema that a user holds in the public database."
  )

  @OptionGroup var server: ServerOptions
  @OptionGroup var output: OutputOptions
  @OptionGroup var container: ContainerOptions

  @Option(help: "The environment of the container: development or production.")
  var environment = ContainerEnvironment.development

  @Option(help: "The user's record name, as users/caller returns it.")
  var userRecordName: String

  @Argument(help: "The roles; without any, all are removed.")
  var roles: [String] = []

  private struct Body: Encodable {
    var container: String
    var environment: ContainerEnvironment
    var userRecordName: String
    var roles: [String]
  }

  func run() async throws {
    try await perform("the roles were not set") {
      let body = Body(
        container: container.containerID,
        environment: environment,
        userRecordName: userRecordName,
        roles: roles
      )
      let _: NoReply = try await server.connect {
        try await $0.requireContainer(container.containerID)
        return try await $0.call(.schema(.setRoles), body)
      }
      try output.done(
        roles.isEmpty
          ? "\(userRecordName) holds no role now."
          : "\(userRecordName) holds \(roles.joined(separator: ", ")) now.",
        body
      )
    }
  }
}
