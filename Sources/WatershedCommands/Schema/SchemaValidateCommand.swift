import ArgumentParser
import CloudKitWebServices
import Foundation

/// `watershed schema validate`.
struct SchemaValidateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "validate",
    abstract: "Check whether a file could be imported, and change nothing.",
    discussion: "Exits with 1 when it could not.",
    aliases: ["validate-schema"]
  )

  @OptionGroup var server: ServerOptions
  @OptionGroup var output: OutputOptions
  @OptionGroup var container: ContainerOptions

  @Option(help: "The environment of the container that the file is for.")
  var environment = ContainerEnvironment.development

  @Option(help: "The schema file; - reads the standard input.")
  var file: String

  private struct Verdict: Encodable {
    var isValid: Bool
    var errorMessage: String?
  }

  func run() async throws {
    try await perform("the schema was not validated") {
      let body = NewSchemaBody(
        container: container.containerID,
        environment: environment,
        schema: try InputFile.text(file)
      )
      do {
        let _: SchemaChanges = try await server.connect {
          try await $0.call(.schema(.validate), body)
        }
      } catch let error as ErrorDictionary where error.serverErrorCode == .badRequest {
        let reason = error.reason ?? error.serverErrorCode.rawValue
        try output.write(
          Verdict(isValid: false, errorMessage: reason),
          text: "❌ Schema validation failed: \(reason)"
        )
        throw ExitCode(1)
      }
      try output.write(Verdict(isValid: true), text: "✅ Schema is valid.")
    }
  }
}
