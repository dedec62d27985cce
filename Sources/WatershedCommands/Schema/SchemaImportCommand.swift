import ArgumentParser
import CloudKitWebServices
import Foundation

/// `watershed schema import`.
struct SchemaImportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Replace the development schema by a file's.",
    discussion: """
      What the file leaves out is deleted from development, unless production has it: then nothing \
      is imported. A field keeps its type and its encryption.
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

  @Flag(help: "Only say what would change.")
  var dryRun = false

  func run() async throws {
    try await perform("the schema was not imported") {
      let body = NewSchemaBody(
        container: container.containerID,
        environment: environment,
        schema: try InputFile.text(file)
      )
      let verb = dryRun ? "validate" : "import"
      let reply: SchemaChanges = try await server.connect {
        try await $0.call("schema/\(verb)", body)
      }
      try output.write(reply, text: reply.text)
      let count = reply.changes.count
      output.remark(
        dryRun ? "Would make \(count) changes." : "Imported: \(count) changes."
      )
    }
  }
}
