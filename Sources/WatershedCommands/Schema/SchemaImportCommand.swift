import ArgumentParser
import CloudKitServer
import CloudKitWebServices
import Foundation

/// `watershed schema import`.
struct SchemaImportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Replace the development schema by a file's.",
    discussion: """
      What the file leaves out is deleted from development with its records, after a question, unless \
      production has it: then nothing is imported. A field keeps its type and its encryption.
      """,
    aliases: ["import-schema"]
  )

  @OptionGroup var server: ServerOptions
  @OptionGroup var output: OutputOptions
  @OptionGroup var container: ContainerOptions

  @Option(help: "Only development is imported into; production is promoted to.")
  var environment = ContainerEnvironment.development

  @Option(help: "The schema file; - reads the standard input.")
  var file: String

  @Flag(help: "Check the file first; as every import does.")
  var validate = false

  @OptionGroup var consent: ConsentOptions

  private func send(
    _ body: NewSchemaBody,
    to verb: AdminEndpoint.Schema
  ) async throws -> SchemaChanges {
    try await server.connect { try await $0.call(.schema(verb), body) }
  }

  func run() async throws {
    try await perform("the schema was not imported") {
      let body = NewSchemaBody(
        container: container.containerID,
        environment: environment,
        schema: try InputFile.text(file)
      )
      let planned = try await send(body, to: .validate)
      let count = Count.of(planned.changes.count, "change")
      let lost = planned.lostTypesAndFields
      if consent.dryRun || !lost.isEmpty {
        let deed =
          "make \(count) in development"
          + (lost.isEmpty ? "" : " and delete \(lost.joined(separator: ", "))")
        guard try consent.isGiven(to: deed, output, reportsTrial: false) else {
          return try output.write(planned, text: planned.text)
        }
      }
      let reply = try await send(body, to: .importSchema)
      try output.write(reply, text: reply.text)
      output.remark("Imported: \(Count.of(reply.changes.count, "change")).")
    }
  }
}
