import ArgumentParser
import CloudKitWebServices
import Foundation

/// `watershed schema diff`.
struct SchemaDiffCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "diff",
    abstract: "Compare production with development, or development with a file.",
    discussion: """
      A line for each change: + added, - removed, ~ changed. Exits with 2 when there is any, with 0 \
      when both are the same.
      """
  )

  @OptionGroup var server: ServerOptions
  @OptionGroup var output: OutputOptions
  @OptionGroup var container: ContainerOptions

  @Option(help: "The environment to start from: production, or development with --file.")
  var from: ContainerEnvironment?

  @Option(help: "The environment to compare it with (default: development).")
  var to: ContainerEnvironment?

  @Option(help: "Compare with this schema file; - reads the standard input.")
  var file: String?

  func validate() throws {
    guard file == nil || to == nil else {
      throw ValidationError("Compare either with --file or with --to.")
    }
  }

  private struct Body: Encodable {
    var container: String
    var from: ContainerEnvironment?
    var to: ContainerEnvironment?
    var schema: String?
  }

  func run() async throws {
    try await perform("the schemas were not compared") {
      let body = Body(
        container: container.containerID,
        from: from,
        to: to,
        schema: try file.map(InputFile.text)
      )
      let reply: SchemaChanges = try await server.connect {
        try await $0.requireContainer(container.containerID)
        return try await $0.call(.schema(.diff), body)
      }
      try output.write(reply, text: reply.text)
      if !reply.changes.isEmpty { throw ExitCode(ExitCodes.found) }
    }
  }
}
