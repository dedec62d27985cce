import ArgumentParser
import CloudKitWebServices
import Effects
import Foundation

/// `watershed schema export`.
struct SchemaExportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract: "Print a schema in the schema language, or write it to a file.",
    aliases: ["export-schema"]
  )

  @OptionGroup var server: ServerOptions
  @OptionGroup var output: OutputOptions
  @OptionGroup var container: ContainerOptions

  @Option(help: "The environment of the container: development or production.")
  var environment = ContainerEnvironment.development

  @Option(help: "The file to write; without it, or with -, the schema goes to the standard output.")
  var outputFile: String?

  private struct Body: Encodable {
    var container: String
    var environment: ContainerEnvironment
  }

  private struct Reply: Codable {
    var schema: String
  }

  func run() async throws {
    try await perform("the schema was not exported") {
      let body = Body(container: container.containerID, environment: environment)
      let reply: Reply = try await server.connect {
        try await $0.requireContainer(container.containerID)
        return try await $0.call(.schema(.export), body)
      }
      if let outputFile, outputFile != "-" {
        try OutputFile.write(reply.schema, to: outputFile)
        try output.done(
          "Wrote the \(environment.rawValue) schema to \(outputFile).",
          ["file": outputFile, "environment": environment.rawValue]
        )
      } else if output.output == .json || output.output == .ndjson {
        try output.write(["ckdb": reply.schema], text: reply.schema)
      } else {
        // The plain text also into a pipe, because it becomes a file's content.
        try StandardOutput.write(reply.schema)
      }
    }
  }
}
